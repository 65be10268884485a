"""Runs the statements of a file through PyMySQL and prints columns and values: client.py HOST PORT DATABASE FILE"""
import sys

import pymysql

host, port, database, path = sys.argv[1:]
connection = pymysql.connect(host=host, port=int(port), user="root", database=database, charset="utf8mb4", init_command="SET time_zone = '+01:00'")
for statement in open(path, encoding="utf-8").read().splitlines():
    for kind in (pymysql.cursors.Cursor, pymysql.cursors.SSCursor):
        with connection.cursor(kind) as cursor:
            print(kind.__name__, statement)
            try:
                cursor.execute(statement)
                rows = cursor.fetchall()
            except pymysql.MySQLError as error:
                print("  error", error.args)
                continue
            for column in cursor.description or ():
                print("  column", column[0], column[1])
            for row in rows:
                print("  row", *(repr(value) for value in row))
with connection.cursor() as cursor:
    cursor.execute("SELECT %s, %s, %s, %s", (1, "it's \\ \"x\"", None, b"\x00A"))
    print("arguments", cursor.fetchall())
connection.close()
