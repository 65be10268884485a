package storage

import (
	"fmt"
	"slices"

	"github.com/tidemarkdb/tidemark/uniquekey"
)

func (c *commitment) put(key, payload []byte) error {
	return c.batch.Set(key, frame(key, payload), nil)
}

func (c *commitment) putJSON(key []byte, v any) error {
	value, err := frameJSON(key, v)
	if err != nil {
		return err
	}
	return c.batch.Set(key, value, nil)
}

func (c *commitment) delete(key []byte) error { return c.batch.Delete(key, nil) }

func (c *commitment) deletePrefix(prefix []byte) error {
	return c.batch.DeleteRange(prefix, prefixEnd(prefix), nil)
}

func (c *commitment) putDatabase(d *databaseState) error {
	return c.putJSON(makeKey(kindDatabase, uint64(d.id)), d.rec)
}

func (c *commitment) putPoint(id DatabaseID, point []byte) error {
	c.ed.database(id).point = point
	return c.put(makeKey(kindPoint, uint64(id)), point)
}

func (c *commitment) putTable(t *tableState) error {
	return c.putJSON(makeKey(kindTable, uint64(t.id)), t.rec)
}

func (c *commitment) putIndex(t *tableState) error {
	return c.putJSON(makeKey(kindIndex, uint64(t.id)), t.idx)
}

// addPart adds a part. What is given is not changed, so that a commit that failed may be tried again with it.
func (c *commitment) addPart(t *tableState, part *partState) error {
	p := new(partState)
	*p = *part
	t.addPart(p)
	c.ed.homes[p.id] = &p.home
	return c.putJSON(makeKey(kindPart, uint64(t.id), uint64(p.id)), p.rec)
}

func (c *commitment) addSegment(t *tableState, segment *newSegment) error {
	s := new(segmentState)
	*s = segment.segmentState
	t.addSegment(s)
	c.ed.next.segmentBytes += s.bytes
	c.ed.homes[s.id] = &s.home
	return c.put(makeKey(kindSegment, uint64(t.id), uint64(s.id)), segment.encoded)
}

// kill marks rows of a home dead, durably and in the next state. The rows must be alive.
func (c *commitment) kill(t *tableState, id HomeID, rows []uint32) error {
	if len(rows) == 0 {
		return nil
	}
	h := c.ed.home(t, id)
	if h == nil {
		return damaged("key index", fmt.Sprintf("it names home %d, which table %s does not have", id, t.rec.Def.FullName()))
	}
	slices.Sort(rows)
	if int(rows[len(rows)-1]) >= h.dead.rows {
		return damaged("key index", fmt.Sprintf("it names row %d of home %d, which has %d", rows[len(rows)-1], id, h.dead.rows))
	}
	checkAlive(h, c.ed.next.seq-1, rows)
	if err := c.putDead(h, rows); err != nil {
		return err
	}
	h.count += len(rows)
	c.deaths = append(c.deaths, death{h, rows})
	return nil
}

// putDead writes dead rows as one delta a commit, until a new base is worth its bytes.
func (c *commitment) putDead(h *home, rows []uint32) error {
	o := &c.s.opt
	if h.deltas < o.deltasPerBase && h.deltaCount+len(rows) <= o.deltaRowsFloor+h.baseCount/2 {
		h.deltas++
		h.deltaCount += len(rows)
		return c.putRows(makeKey(kindDeadDelta, uint64(h.id), uint64(c.ed.next.seq)), rows)
	}
	all := uniquekey.NewBitset(h.dead.rows)
	if before := h.dead.at(c.ed.next.seq - 1); before != nil {
		copy(all, before.bits)
		h.dead.release(before)
	}
	for _, r := range rows {
		all.Set(r)
	}
	h.baseCount, h.deltas, h.deltaCount = h.count+len(rows), 0, 0
	if err := c.deletePrefix(makeKey(kindDeadDelta, uint64(h.id))); err != nil {
		return err
	}
	return c.putRows(makeKey(kindDeadBase, uint64(h.id)), all.Rows())
}

func (c *commitment) putRows(key []byte, rows []uint32) error {
	encoded, err := uniquekey.EncodeRows(rows)
	if err != nil {
		return err
	}
	return c.put(key, encoded)
}

// dropPart takes a part out of the table; its file becomes garbage.
func (c *commitment) dropPart(t *tableState, p *partState) error {
	t.parts = slices.DeleteFunc(t.parts, func(q *partState) bool { return q.id == p.id })
	err := c.delete(makeKey(kindPart, uint64(t.id), uint64(p.id)))
	return firstError(err, firstError(c.dropDead(p.id), c.discard(p.id, p.rec.Path)))
}

// discard leaves a file to the janitor.
func (c *commitment) discard(id HomeID, path string) error {
	return c.putJSON(makeKey(kindGarbage, uint64(id)), garbageRecord{Path: path, Seq: c.ed.next.seq, Removed: c.s.opt.Now().Unix()})
}

func (c *commitment) dropSegment(t *tableState, s *segmentState) error {
	t.segments = slices.DeleteFunc(t.segments, func(q *segmentState) bool { return q.id == s.id })
	c.ed.next.segmentBytes -= s.bytes
	err := c.delete(makeKey(kindSegment, uint64(t.id), uint64(s.id)))
	return firstError(err, c.dropDead(s.id))
}

func (c *commitment) dropDead(id HomeID) error {
	err := c.delete(makeKey(kindDeadBase, uint64(id)))
	return firstError(err, c.deletePrefix(makeKey(kindDeadDelta, uint64(id))))
}

// dropRows takes all rows of the table's generation away: homes, index entries, layers.
func (c *commitment) dropRows(t *tableState) error {
	var err error
	for _, p := range slices.Clone(t.parts) {
		err = firstError(err, c.dropPart(t, p))
	}
	for _, s := range slices.Clone(t.segments) {
		err = firstError(err, c.dropSegment(t, s))
	}
	err = firstError(err, c.deletePrefix(baseKey(nil, t.rec.Generation, nil)))
	for _, l := range t.idx.Layers {
		err = firstError(err, c.deletePrefix(layerKey(nil, l, nil)))
	}
	for _, r := range t.idx.Remaps {
		err = firstError(err, c.deletePrefix(layerKey(nil, r.Layer, nil)))
	}
	t.idx = indexRecord{KeyEncoding: uniquekey.Encoding}
	return err
}

// dropTable takes a table away altogether.
func (c *commitment) dropTable(t *tableState) error {
	err := firstError(c.dropRows(t), c.dropLoad(t))
	err = firstError(err, c.deletePrefix(makeKey(kindXA, uint64(t.id))))
	err = firstError(err, c.delete(makeKey(kindTable, uint64(t.id))))
	err = firstError(err, c.delete(makeKey(kindIndex, uint64(t.id))))
	c.ed.dropTable(t)
	return err
}
