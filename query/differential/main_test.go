package differential

import (
	"os"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }
