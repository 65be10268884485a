package server

import (
	"strings"

	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/replica"
	"github.com/tidemarkdb/tidemark/server/admin"
)

// showable gives a statement without what may be a password.
func showable(text string) string {
	switch admin.FirstWord(text) {
	case "CREATE", "ALTER", "GRANT", "SET", "CHANGE":
		return admin.Redact(text)
	}
	return text
}

// hidden gives a part of a statement as an error may show it.
func hidden(statement, part string) string {
	if showable(statement) != statement {
		return admin.Redact(part)
	}
	return part
}

// executedSet is @@gtid_executed: the points of all databases together.
func (s *Server) executedSet() string {
	var sets []string
	for _, st := range s.manager.Status() {
		if st.GTIDSet != "" {
			sets = append(sets, st.GTIDSet)
		}
	}
	return strings.Join(sets, ",")
}

// binlogStatus is SHOW BINARY LOG STATUS. There is no binlog here; the row of a server with one database is the point
// that a query would see.
func (s *Server) binlogStatus() *result.Table {
	t := result.NewTable(result.Text("File"), result.Uint("Position"), result.Text("Binlog_Do_DB"), result.Text("Binlog_Ignore_DB"),
		result.LongText("Executed_Gtid_Set"))
	for _, st := range s.manager.Status() {
		t.Add(st.File, st.Position, "", "", st.GTIDSet)
	}
	return t
}

// replicaColumns are those of SHOW REPLICA STATUS, in order.
var replicaColumns = strings.Fields(`Replica_IO_State Source_Host Source_User Source_Port Connect_Retry Source_Log_File
	Read_Source_Log_Pos Relay_Log_File Relay_Log_Pos Relay_Source_Log_File Replica_IO_Running Replica_SQL_Running Replicate_Do_DB
	Replicate_Ignore_DB Replicate_Do_Table Replicate_Ignore_Table Replicate_Wild_Do_Table Replicate_Wild_Ignore_Table Last_Errno Last_Error
	Skip_Counter Exec_Source_Log_Pos Relay_Log_Space Until_Condition Until_Log_File Until_Log_Pos Source_SSL_Allowed Source_SSL_CA_File
	Source_SSL_CA_Path Source_SSL_Cert Source_SSL_Cipher Source_SSL_Key Seconds_Behind_Source Source_SSL_Verify_Server_Cert Last_IO_Errno
	Last_IO_Error Last_SQL_Errno Last_SQL_Error Replicate_Ignore_Server_Ids Source_Server_Id Source_UUID Source_Info_File SQL_Delay
	SQL_Remaining_Delay Replica_SQL_Running_State Source_Retry_Count Source_Bind Last_IO_Error_Timestamp Last_SQL_Error_Timestamp
	Source_SSL_Crl Source_SSL_Crlpath Retrieved_Gtid_Set Executed_Gtid_Set Auto_Position Replicate_Rewrite_DB Channel_Name
	Source_TLS_Version Source_public_key_path Get_Source_public_key Network_Namespace`)

var numberColumns = map[string]bool{
	"Source_Port": true, "Connect_Retry": true, "Read_Source_Log_Pos": true, "Relay_Log_Pos": true, "Last_Errno": true, "Skip_Counter": true,
	"Exec_Source_Log_Pos": true, "Relay_Log_Space": true, "Until_Log_Pos": true, "Seconds_Behind_Source": true, "Last_IO_Errno": true,
	"Last_SQL_Errno": true, "Source_Server_Id": true, "SQL_Delay": true, "SQL_Remaining_Delay": true, "Source_Retry_Count": true,
	"Auto_Position": true, "Get_Source_public_key": true,
}

// oldReplicaNames turns the names of SHOW REPLICA STATUS into those of SHOW SLAVE STATUS.
var oldReplicaNames = strings.NewReplacer("Source_Info_File", "Master_Info_File", "Get_Source_public_key", "Get_master_public_key",
	"Source_public_key_path", "Master_public_key_path", "Source", "Master", "Replica", "Slave")

// replicaStatus is SHOW REPLICA STATUS, or SHOW SLAVE STATUS where today is false: a row a database, its name standing
// as the channel's. channel restricts it to one.
func (s *Server) replicaStatus(today bool, channel string) *result.Table {
	var fields []field.Field
	for _, name := range replicaColumns {
		f := result.Text(name)
		if numberColumns[name] {
			f = result.Uint(name)
		}
		if !today {
			f.Name = oldReplicaNames.Replace(name)
		}
		fields = append(fields, f)
	}
	t := result.NewTable(fields...)
	for _, st := range s.manager.Status() {
		if channel != "" && st.Name != channel {
			continue
		}
		values := replicaValues(&st)
		row := make([]any, len(replicaColumns))
		for i, name := range replicaColumns {
			switch v, ok := values[name]; {
			case ok:
				row[i] = v
			case numberColumns[name]:
				row[i] = 0
			default:
				row[i] = ""
			}
		}
		t.Add(row...)
	}
	return t
}

func replicaValues(st *replica.Status) map[string]any {
	host, rest, _ := strings.Cut(st.Source, ":")
	port, db, _ := strings.Cut(rest, "/")
	running := "No"
	if st.State == replica.StateStreaming || st.State == replica.StateSnapshot {
		running = "Yes"
	}
	v := map[string]any{
		"Source_Host": host, "Source_Port": port, "Connect_Retry": 1, "Source_Log_File": st.File, "Read_Source_Log_Pos": st.Position,
		"Relay_Source_Log_File": st.File, "Exec_Source_Log_Pos": st.Position, "Replica_IO_Running": running, "Replica_SQL_Running": running,
		"Replicate_Do_DB": db, "Until_Condition": "None", "Source_SSL_Allowed": "No", "Source_SSL_Verify_Server_Cert": "No",
		"Seconds_Behind_Source": nil, "SQL_Remaining_Delay": nil, "Executed_Gtid_Set": st.GTIDSet, "Retrieved_Gtid_Set": "",
		"Channel_Name": st.Name, "Auto_Position": 0,
	}
	if st.GTIDSet != "" {
		v["Auto_Position"] = 1
	}
	if st.LagSeconds != nil {
		v["Seconds_Behind_Source"] = uint64(*st.LagSeconds)
	}
	if running == "Yes" {
		v["Replica_IO_State"] = "Waiting for source to send event"
		v["Replica_SQL_Running_State"] = "Replica has read all relay log; waiting for more updates"
	}
	if st.Error != nil {
		v["Last_Error"], v["Last_SQL_Error"] = *st.Error, *st.Error
		v["Last_Errno"], v["Last_SQL_Errno"] = 1105, 1105
	}
	return v
}
