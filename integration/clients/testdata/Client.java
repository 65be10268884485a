import java.math.*;
import java.nio.file.*;
import java.sql.*;
import java.util.*;

/** Runs the statements of a file through Connector/J and prints columns and values: Client.java HOST PORT DATABASE FILE */
public class Client {
  static void print(ResultSet rows) throws SQLException {
    ResultSetMetaData meta = rows.getMetaData();
    for (int i = 1; i <= meta.getColumnCount(); i++)
      System.out.println("  column " + meta.getColumnLabel(i) + " " + meta.getColumnTypeName(i) + " " + meta.getColumnClassName(i));
    printValues(rows);
  }

  static void printValues(ResultSet rows) throws SQLException {
    ResultSetMetaData meta = rows.getMetaData();
    while (rows.next()) {
      StringBuilder line = new StringBuilder("  row");
      for (int i = 1; i <= meta.getColumnCount(); i++) {
        Object value = rows.getObject(i);
        line.append(" | ").append(value instanceof byte[] bytes ? Arrays.toString(bytes) : value);
      }
      System.out.println(line);
    }
  }

  static void statements(String url, List<String> statements) throws SQLException {
    try (Connection connection = DriverManager.getConnection(url)) {
      for (String statement : statements) {
        System.out.println(statement);
        try (PreparedStatement prepared = connection.prepareStatement(statement); ResultSet rows = prepared.executeQuery()) {
          print(rows);
        } catch (SQLException e) {
          System.out.println("  error " + e.getErrorCode() + " " + e.getSQLState() + " " + e.getMessage());
        }
      }
      connection.setReadOnly(true);
      connection.setAutoCommit(false);
      try (PreparedStatement p = connection.prepareStatement("SELECT ?, ?, ?, ?, ?, ? IS NULL")) {
        p.setLong(1, -5);
        p.setString(2, "it's");
        p.setBytes(3, new byte[] {0, 65});
        p.setTimestamp(4, Timestamp.valueOf("2024-02-29 12:34:56.5"));
        p.setBoolean(5, true);
        p.setNull(6, Types.INTEGER);
        printValues(p.executeQuery()); // how long a parameter may be is not ours to know: VARCHAR here, TEXT there
      }
      connection.commit();
      System.out.println("valid " + connection.isValid(5));
    }
  }

  static void metadata(String url, String database) throws SQLException {
    try (Connection connection = DriverManager.getConnection(url)) {
      DatabaseMetaData meta = connection.getMetaData();
      System.out.println("keywords " + (meta.getSQLKeywords().length() > 0));
      print(meta.getTables(database, null, "%", null));
      print(meta.getColumns(database, null, "every", "%"));
      print(meta.getPrimaryKeys(database, null, "every"));
      print(meta.getTypeInfo());
    }
  }

  public static void main(String[] args) throws Exception {
    String url = "jdbc:mysql://" + args[0] + ":" + args[1] + "/" + args[2] + "?user=root&connectionTimeZone=%2B01:00&forceConnectionTimeZoneToSession=true";
    List<String> statements = Files.readAllLines(Path.of(args[3]));
    for (String options : List.of("&useServerPrepStmts=false", "&useServerPrepStmts=true", "&useCursorFetch=true&defaultFetchSize=1"))
      statements(url + options, statements);
    metadata(url, args[2]);
  }
}
