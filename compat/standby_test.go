package compat

import (
	"strings"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/clouds"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/wire"
)

func TestStandby(t *testing.T) {
	const a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"
	source := sourceWith(t, map[string]string{"gtid_executed": a + ":1-9"})
	for _, tc := range []struct {
		set  map[string]string
		says string
	}{
		{map[string]string{"server_uuid": b, "gtid_executed": a + ":1-7," + b + ":1"}, ""},
		{map[string]string{"gtid_executed": a + ":1-9"}, "same server"},
		{map[string]string{"server_uuid": b, "gtid_executed": b + ":1-9"}, "another history"},
		{map[string]string{"server_uuid": b, "gtid_mode": "OFF"}, "gtid_mode is OFF there and ON at the first"},
		{map[string]string{"server_uuid": b, "gtid_executed": a + ":1-9", "log_replica_updates": "OFF"}, "log_replica_updates is OFF"},
		{map[string]string{"server_uuid": b, "gtid_executed": a + ":1-9", "binlog_format": "MIXED"}, "binlog_format is MIXED"},
		{map[string]string{"server_uuid": b, "version": "10.11.6-MariaDB"}, "is MariaDB"},
	} {
		problems := sourceWith(t, tc.set).standbyProblems(source, "shop")
		text := ""
		for _, p := range problems {
			text += p.String() + "\n"
		}
		if tc.says == "" && text != "" || !strings.Contains(text, tc.says) {
			t.Errorf("%v: %q", tc.set, text)
		}
	}
}

func TestExamineStandby(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	source := examine(t, s.Login, Wishes{Database: db}).Source
	l := clouds.Account(t, s, "PROCESS")
	problems, err := ExamineStandby(t.Context(), config(l), source, Wishes{Database: db})
	if err != nil || len(problems) != 2 {
		t.Fatal(problems, err)
	}
	wantAll(t, problems[0].String()+problems[1].String(), s.Addr()+": account '"+l.User+"'@'%' lacks REPLICATION SLAVE", "same server")
	problems, err = ExamineStandby(t.Context(), wire.Config{Host: "127.0.0.1", Port: 1, User: "u"}, source, Wishes{Database: db})
	if err != nil || len(problems) != 1 || problems[0].Code != "standby" {
		t.Fatal(problems, err)
	}
}
