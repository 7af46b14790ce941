package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// security collects the properties that together make the TLS and SASL settings.
type security struct {
	protocol    string // PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
	mechanism   string
	jaas        string
	username    string
	password    string
	dialTimeout time.Duration
	via         map[string]string // other addresses for those that brokers advertise
	trustType   string
	trustFile   string
	trustPEM    string
	keyType     string
	keyFile     string // PEM with chain and key together
	certFile    string // separate files, librdkafka's names
	keyOnlyFile string
	chainPEM    string
	keyPEM      string
	noHostname  bool
}

// securityHandlers: Kafka's names, and librdkafka's for PEM files (ssl.ca.location and so on).
func securityHandlers(h map[string]handler) {
	h["security.protocol"] = func(r *propertyReader, k, v string) {
		r.sec.protocol = r.oneOf(k, v, "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
	}
	h["sasl.mechanism"] = func(r *propertyReader, k, v string) {
		r.sec.mechanism = r.oneOf(k, v, "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
	}
	text := func(dst func(s *security) *string) handler {
		return func(r *propertyReader, _, v string) { *dst(&r.sec) = v }
	}
	h["sasl.jaas.config"] = text(func(s *security) *string { return &s.jaas })
	h["sasl.username"] = text(func(s *security) *string { return &s.username })
	h["sasl.password"] = text(func(s *security) *string { return &s.password })
	h["ssl.truststore.location"] = text(func(s *security) *string { return &s.trustFile })
	h["ssl.ca.location"] = h["ssl.truststore.location"]
	h["ssl.truststore.certificates"] = text(func(s *security) *string { return &s.trustPEM })
	h["ssl.keystore.location"] = text(func(s *security) *string { return &s.keyFile })
	h["ssl.certificate.location"] = text(func(s *security) *string { return &s.certFile })
	h["ssl.key.location"] = text(func(s *security) *string { return &s.keyOnlyFile })
	h["ssl.keystore.certificate.chain"] = text(func(s *security) *string { return &s.chainPEM })
	h["ssl.keystore.key"] = text(func(s *security) *string { return &s.keyPEM })
	storeType := func(dst func(s *security) *string) handler {
		return func(r *propertyReader, k, v string) {
			if !strings.EqualFold(v, "PEM") {
				r.javaStore(k, v)
			}
			*dst(&r.sec) = "PEM"
		}
	}
	h["ssl.truststore.type"] = storeType(func(s *security) *string { return &s.trustType })
	h["ssl.keystore.type"] = storeType(func(s *security) *string { return &s.keyType })
	unsupported := func(r *propertyReader, k, v string) {
		if v != "" {
			r.fail(k, "stores with a password are not supported").
				WithHint("use unencrypted PEM files readable by this user only")
		}
	}
	h["ssl.truststore.password"], h["ssl.keystore.password"], h["ssl.key.password"] = unsupported, unsupported, unsupported
	h["ssl.endpoint.identification.algorithm"] = func(r *propertyReader, k, v string) {
		r.sec.noHostname = v == "" || r.oneOf(k, v, "https") == ""
	}
}

func (r *propertyReader) javaStore(key, what string) {
	r.fail(key, "'%s' is not supported: only PEM is", what).
		WithDetail("JKS and PKCS12 stores are Java's own containers").
		WithHint("convert the store: keytool -importkeystore -srckeystore store.jks -destkeystore store.p12 -deststoretype PKCS12; " +
			"openssl pkcs12 -in store.p12 -nodes -out store.pem; then set the type to 'PEM'")
}

func (s *security) opts(r *propertyReader) ([]kgo.Opt, error) {
	if s.dialTimeout == 0 {
		s.dialTimeout = 10 * time.Second
	}
	useTLS := s.protocol == "SSL" || s.protocol == "SASL_SSL"
	useSASL := strings.HasPrefix(s.protocol, "SASL_")
	var opts []kgo.Opt
	if useTLS {
		cfg, err := s.tls(r)
		if err != nil {
			return nil, err
		}
		d := &tls.Dialer{NetDialer: &net.Dialer{Timeout: s.dialTimeout}, Config: cfg}
		dial := d.DialContext
		if s.via != nil {
			dial = s.dialVia(cfg)
		}
		opts = append(opts, kgo.Dialer(dial))
	} else {
		if s.trustFile != "" || s.keyFile != "" || s.trustPEM != "" || s.certFile != "" {
			return nil, r.fail("security.protocol", "ssl.* properties are given but TLS is not used").
				WithHint("set 'properties.security.protocol' = 'SSL' or 'SASL_SSL'")
		}
		if opts = append(opts, kgo.DialTimeout(s.dialTimeout)); s.via != nil {
			opts = []kgo.Opt{kgo.Dialer(s.dialVia(nil))}
		}
	}
	if !useSASL {
		if s.jaas != "" || s.mechanism != "" || s.username != "" {
			return nil, r.fail("security.protocol", "sasl.* properties are given but SASL is not used").
				WithHint("set 'properties.security.protocol' = 'SASL_SSL' (or 'SASL_PLAINTEXT')")
		}
		return opts, nil
	}
	m, err := s.sasl(r)
	if err != nil {
		return nil, err
	}
	return append(opts, kgo.SASL(m)), nil
}

// jaasField finds name="value" (or 'value', or a bare word) in a JAAS login module line.
var jaasField = regexp.MustCompile(`(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;]+))`)

func (s *security) sasl(r *propertyReader) (sasl.Mechanism, error) {
	user, pass := s.username, s.password
	if s.jaas != "" {
		module, _, _ := strings.Cut(strings.TrimSpace(s.jaas), " ")
		scramModule := strings.HasSuffix(module, ".ScramLoginModule")
		if !scramModule && !strings.HasSuffix(module, ".PlainLoginModule") {
			return nil, r.fail("sasl.jaas.config", "login module '%s' is not supported", module).
				WithHint("use org.apache.kafka.common.security.plain.PlainLoginModule or org.apache.kafka.common.security.scram.ScramLoginModule")
		}
		if s.mechanism != "" && scramModule != strings.HasPrefix(s.mechanism, "SCRAM-") {
			return nil, r.fail("sasl.jaas.config", "login module '%s' does not fit 'properties.sasl.mechanism' = '%s'", module, s.mechanism).
				WithHint("PLAIN goes with PlainLoginModule, SCRAM-* with ScramLoginModule")
		}
		for _, m := range jaasField.FindAllStringSubmatch(s.jaas, -1) {
			v := strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(m[2]) + m[3] + m[4]
			switch m[1] {
			case "username":
				user = v
			case "password":
				pass = v
			default:
				return nil, r.fail("sasl.jaas.config", "setting '%s' is not supported", m[1])
			}
		}
	}
	if user == "" {
		return nil, r.fail("sasl.jaas.config", "no user name given").
			WithHint(`set 'properties.sasl.jaas.config' = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";'`)
	}
	switch s.mechanism {
	case "PLAIN":
		return plain.Auth{User: user, Pass: pass}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: pass}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: pass}.AsSha512Mechanism(), nil
	}
	return nil, r.fail("sasl.mechanism", "is missing").WithDetail("the Java client's default, GSSAPI (Kerberos), is not supported").
		WithHint("set 'properties.sasl.mechanism' to 'SCRAM-SHA-512', 'SCRAM-SHA-256' or 'PLAIN'")
}

func (s *security) tls(r *propertyReader) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	trust, err := r.pem("ssl.truststore.location", s.trustFile, s.trustPEM)
	if err != nil {
		return nil, err
	}
	if trust != nil {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(trust) {
			return nil, r.fail("ssl.truststore.location", "no certificate found").WithHint("the file must hold PEM blocks of type CERTIFICATE")
		}
	}
	cert, err := r.pem("ssl.keystore.location", s.keyFile, s.chainPEM)
	if err != nil {
		return nil, err
	}
	if s.certFile != "" {
		if cert, err = r.pem("ssl.certificate.location", s.certFile, ""); err != nil {
			return nil, err
		}
	}
	key, err := r.pem("ssl.key.location", s.keyOnlyFile, s.keyPEM)
	if err != nil {
		return nil, err
	}
	if key == nil {
		key = cert
	}
	if cert != nil {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, r.fail("ssl.keystore.location", "client certificate cannot be used").Wrap(err).
				WithHint("the PEM needs the certificate chain and its unencrypted private key")
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if s.noHostname {
		// Java's '' turns off the check of the host name only, so the chain is still verified by hand.
		cfg.InsecureSkipVerify = true
		cfg.VerifyConnection = func(cs tls.ConnectionState) error { return verifyChain(cs, cfg.RootCAs) }
	}
	return cfg, nil
}

func verifyChain(cs tls.ConnectionState, roots *x509.CertPool) error {
	if len(cs.PeerCertificates) == 0 {
		return errors.New("the broker sent no certificate")
	}
	o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range cs.PeerCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := cs.PeerCertificates[0].Verify(o)
	return err
}

// pem returns the text of a PEM property: the file's content, or inline text (in which spaces may stand for newlines,
// as the Java client allows).
func (r *propertyReader) pem(key, file, inline string) ([]byte, error) {
	if file == "" && inline == "" {
		return nil, nil
	}
	text := []byte(inline)
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, r.fail(key, "cannot be read").Wrap(err)
		}
		text = b
	} else if !strings.Contains(strings.TrimSpace(inline), "\n") {
		text = []byte(unfoldPEM(inline))
	}
	if block, _ := pem.Decode(text); block == nil {
		if len(text) > 0 && (text[0] == 0xfe || text[0] == 0x30) {
			r.javaStore(key, fmt.Sprint(file))
			return nil, r.err
		}
		return nil, r.fail(key, "holds no PEM block").WithHint("the text must start with -----BEGIN")
	} else if strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "" {
		return nil, r.fail(key, "encrypted private keys are not supported").
			WithHint("decrypt it: openssl pkey -in key.pem -out plain.pem")
	}
	return text, nil
}

var pemMark = regexp.MustCompile(`-----(BEGIN|END) [A-Z0-9 ]+-----`)

func unfoldPEM(s string) string {
	marks := pemMark.FindAllStringIndex(s, -1)
	var sb strings.Builder
	for i, m := range marks {
		sb.WriteString(s[m[0]:m[1]])
		sb.WriteByte('\n')
		if i%2 == 0 && i+1 < len(marks) {
			sb.WriteString(strings.Join(strings.Fields(s[m[1]:marks[i+1][0]]), "\n"))
			sb.WriteByte('\n')
		}
	}
	return sb.String()
}
