package replica

import (
	"time"

	"github.com/tidemarkdb/tidemark/storage"
)

// resyncStatus tells of a table's new copy; nil: none is made or due. d.mu is held.
func (d *database) resyncStatus(t *storage.TableInfo, begun bool) *ResyncStatus {
	j := d.jobs.of(t.Def.Name)
	r := d.cfg.Resyncs[t.Def.Name]
	auto := d.cfg.Spec.Settings.AutoResync && unfit(t)
	if j == nil && !r.Asked && !begun && !auto {
		return nil
	}
	st := &ResyncStatus{State: ResyncWaiting, Tries: r.Tries}
	if r.Error != "" {
		st.Error = &r.Error
	}
	if lost, ok := d.jobs.waits(t.Def.Name); ok {
		st.Error = &lost.text
	}
	if j != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		st.State, st.Rows, st.TotalRows = j.state, j.rows, j.total
		if j.note != "" {
			st.Error = new(j.note)
		}
	} else if r.Next.After(time.Now()) {
		st.NextTry = &r.Next
	}
	return st
}

func (j *jobs) waits(table string) (lostJob, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l, ok := j.lost[table]
	return l, ok
}
