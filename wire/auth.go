package wire

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// moreData is the first byte of a packet of a plugin's exchange.
const moreData = 0x01

// Bytes of the exchange of caching_sha2_password, and of sha256_password.
const (
	sha2FastOK   = 3
	sha2Full     = 4
	askSHA2Key   = 2
	askSHA256Key = 1
)

// authenticate answers the greeting, and what the server asks from then on.
func (g *greeter) authenticate() error {
	plugin, salt := g.hello.plugin, g.hello.salt
	word, err := g.firstWord(plugin, salt)
	var unknown *unknownPluginError
	if errors.As(err, &unknown) { // a default that our account need not have; the server asks for the account's own next
		plugin = mysql.AUTH_CACHING_SHA2_PASSWORD
		word, err = g.firstWord(plugin, salt)
	}
	if err != nil {
		return err
	}
	if err := g.packets.write(g.answer(plugin, word)); err != nil {
		return err
	}
	for switched := false; ; {
		b, err := g.packets.read()
		if err != nil {
			return err
		}
		switch {
		case b[0] == mysql.OK_HEADER:
			return nil
		case b[0] == mysql.EOF_HEADER && !switched:
			switched = true
			if plugin, salt, err = g.switchPlugin(b); err != nil {
				return err
			}
		case b[0] == moreData:
			if err := g.nextWord(plugin, salt, b[1:]); err != nil {
				return err
			}
		default:
			return &setupError{fmt.Errorf("the server asks for more than a password (packet %#x)", b[0]), "use an account with one factor"}
		}
	}
}

// switchPlugin begins again with the plugin that the server names: 0xFE, plugin\0, salt.
func (g *greeter) switchPlugin(b []byte) (plugin string, salt []byte, err error) {
	f := packetReader{rest: b[1:]}
	plugin = f.terminated()
	salt = trimSalt(append([]byte(nil), f.rest...))
	word, err := g.firstWord(plugin, salt)
	if err != nil {
		return "", nil, err
	}
	return plugin, salt, g.packets.write(word)
}

// unknownPluginError is about a way to log in that we do not know.
type unknownPluginError struct{ plugin string }

func (e *unknownPluginError) Error() string {
	return fmt.Sprintf("the account uses the authentication plugin %q, which is not supported", e.plugin)
}

// secret tells whether nobody but the server reads what we send.
func (g *greeter) secret() bool { return g.encrypted || g.cfg.Socket != "" }

// firstWord is what a plugin's exchange begins with.
func (g *greeter) firstWord(plugin string, salt []byte) ([]byte, error) {
	switch plugin {
	case mysql.AUTH_NATIVE_PASSWORD:
		return mysql.CalcNativePassword(salt, []byte(g.password)), nil
	case mysql.AUTH_CACHING_SHA2_PASSWORD:
		return mysql.CalcCachingSha2Password(salt, []byte(g.password)), nil
	case mysql.AUTH_SHA256_PASSWORD:
		if g.secret() || g.password == "" {
			return g.clear(), nil
		}
		return g.sealed(salt, askSHA256Key)
	case mysql.AUTH_CLEAR_PASSWORD:
		if !g.secret() {
			return nil, &setupError{errors.New("the server asks for the password in the clear, over a connection that is not encrypted"), "set ssl_mode = 'required' or stricter"}
		}
		return g.clear(), nil
	}
	return nil, &setupError{&unknownPluginError{plugin}, "use an account with caching_sha2_password, or mysql_clear_password over TLS (IAM)"}
}

func (g *greeter) clear() []byte { return append([]byte(g.password), 0) }

// nextWord answers a packet in the middle of a plugin's exchange.
func (g *greeter) nextWord(plugin string, salt, asked []byte) error {
	switch {
	case plugin == mysql.AUTH_CACHING_SHA2_PASSWORD && len(asked) == 1 && asked[0] == sha2FastOK:
		return nil
	case plugin == mysql.AUTH_CACHING_SHA2_PASSWORD && len(asked) == 1 && asked[0] == sha2Full:
		return g.fullSHA2(salt)
	case plugin == mysql.AUTH_CACHING_SHA2_PASSWORD, plugin == mysql.AUTH_SHA256_PASSWORD:
		return g.sealWith(salt, asked)
	}
	return mysql.ErrMalformPacket
}

// fullSHA2 is for a server that has not the password in its cache.
func (g *greeter) fullSHA2(salt []byte) error {
	word := g.clear()
	if !g.secret() {
		var err error
		if word, err = g.sealed(salt, askSHA2Key); err != nil {
			return err
		}
	}
	return g.packets.write(word)
}

// sealed gives the password under the server's key where we have that, else the request for the key.
func (g *greeter) sealed(salt []byte, request byte) ([]byte, error) {
	switch {
	case g.cfg.TLS.ServerKey != "":
		pem, err := g.cfg.read(g.cfg.TLS.ServerKey, "the server's public key", "server_public_key_path")
		if err != nil {
			return nil, err
		}
		return g.seal(salt, pem)
	case g.cfg.TLS.AskServerKey:
		return []byte{request}, nil
	}
	return nil, &setupError{errors.New("the server asks for the password over a connection that is not encrypted"),
		"encrypt it (ssl_mode = 'required'), or give the server's public key (server_public_key_path), or take the one that it sends (get_server_public_key = 1)"}
}

// sealWith answers the server's key, which we have asked for.
func (g *greeter) sealWith(salt, pem []byte) error {
	if g.secret() || !g.cfg.TLS.AskServerKey || g.cfg.TLS.ServerKey != "" {
		return mysql.ErrMalformPacket
	}
	word, err := g.seal(salt, pem)
	if err != nil {
		return err
	}
	return g.packets.write(word)
}

func (g *greeter) seal(salt, text []byte) ([]byte, error) {
	var key *rsa.PublicKey
	if block, _ := pem.Decode(text); block != nil {
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, &setupError{fmt.Errorf("the server's public key: %w", err), "check it"}
		}
		key, _ = parsed.(*rsa.PublicKey)
	}
	if key == nil || len(salt) == 0 {
		return nil, &setupError{errors.New("the server's public key is no RSA key in PEM form"), "check it"}
	}
	return mysql.EncryptPassword(g.password, salt, key)
}
