package snapshot

// Obstacle is why the cut could not be made.
type Obstacle uint8

// The obstacles.
const (
	// Busy: long statements or other locks were in the way for all of the patience.
	Busy Obstacle = iota + 1
	// Denied: the source does not allow the lock to this account.
	Denied
	// PreparedXA: XA transactions stayed prepared for all of the patience.
	PreparedXA
	// TooSlow: the work under the lock took longer than its limit, and the lock was let go.
	TooSlow
	// Unfit: a table that came since the plan was made can't be copied.
	Unfit
)

// LockError says why the cut could not be made. Nothing is locked any more.
type LockError struct {
	Obstacle Obstacle
	Reason   string
	Err      error // nil where the reason is all
}

func (e *LockError) Error() string {
	if e.Err != nil {
		return "snapshot: " + e.Reason + ": " + e.Err.Error()
	}
	return "snapshot: " + e.Reason
}

// Unwrap gives the cause.
func (e *LockError) Unwrap() error { return e.Err }
