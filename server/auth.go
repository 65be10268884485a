package server

import (
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"net"
)

// The two ways of proving a password that are spoken. The first is what MySQL's own client has since 9.0; the second is
// for old drivers.
const (
	cachingSHA2    = "caching_sha2_password"
	nativePassword = "mysql_native_password"
)

const nonceLength = 20

// newNonce gives the random bytes of a greeting. They have no zero byte, since they travel as a zero-terminated string.
func newNonce() []byte {
	b := make([]byte, nonceLength)
	_, _ = rand.Read(b) // never fails
	for i := range b {
		b[i] = b[i]%126 + 1
	}
	return b
}

// provesPassword checks what a client sent by a plug-in. An empty password is proved by an empty answer, which some
// clients send as one zero byte.
func provesPassword(plugin, password string, nonce, answer []byte) bool {
	if len(answer) == 0 || len(answer) == 1 && answer[0] == 0 {
		return password == ""
	}
	var want []byte
	switch plugin {
	case cachingSHA2:
		want = sha2Scramble(password, nonce)
	case nativePassword:
		want = nativeScramble(password, nonce)
	}
	return len(want) > 0 && subtle.ConstantTimeCompare(want, answer) == 1
}

// sha2Scramble is SHA256(password) xor SHA256(SHA256(SHA256(password)) nonce).
func sha2Scramble(password string, nonce []byte) []byte {
	once := sha256.Sum256([]byte(password))
	twice := sha256.Sum256(once[:])
	mask := sha256.Sum256(append(twice[:], nonce...))
	return xored(once[:], mask[:])
}

// nativeScramble is SHA1(password) xor SHA1(nonce SHA1(SHA1(password))).
func nativeScramble(password string, nonce []byte) []byte {
	once := sha1.Sum([]byte(password))
	twice := sha1.Sum(once[:])
	mask := sha1.Sum(append(append([]byte{}, nonce...), twice[:]...))
	return xored(once[:], mask[:])
}

func xored(a, b []byte) []byte {
	out := make([]byte, len(a))
	for i := range a {
		out[i] = a[i] ^ b[i]
	}
	return out
}

// isLoopback tells whether a peer is on this machine.
func isLoopback(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}
