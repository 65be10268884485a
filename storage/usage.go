package storage

// Usage is what a store takes.
type Usage struct {
	// PartBytes are the files of rows that versions have. Files of dropped or merged parts, which go later, are not counted.
	PartBytes int64
	// MetaBytes are the files of the catalog and the key index.
	MetaBytes uint64
	// SegmentBytes is the memory of the rows that are not in files of their own yet.
	SegmentBytes int64
	// Damaged counts the tables that can't be read.
	Damaged int
}

// Usage tells what the store takes now.
func (s *Store) Usage() Usage {
	st := s.head.Load()
	u := Usage{MetaBytes: s.meta.Metrics().DiskSpaceUsage(), SegmentBytes: st.segmentBytes}
	for _, t := range st.tables {
		info := t.info()
		u.PartBytes += info.Bytes
		if t.damage != nil {
			u.Damaged++
		}
	}
	return u
}
