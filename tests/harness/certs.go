package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificates are the PEM files of a throw-away authority and what it signed, and the same as a client's TLS settings.
type certificates struct {
	ca          string // the authority's certificate
	serverStore string // server key and chain in one file, the form of a PEM keystore of Kafka
	clientCert  string
	clientKey   string
	config      *tls.Config // trusts the authority and shows the client certificate
}

// newCertificates makes an authority, a certificate for 127.0.0.1 and localhost, and one for a client, in dir.
func newCertificates(dir string) (*certificates, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	caTemplate := template(1, "streamsql test authority")
	caTemplate.IsCA, caTemplate.BasicConstraintsValid, caTemplate.KeyUsage = true, true, x509.KeyUsageCertSign
	caDER, err := x509.CreateCertificate(rand.Reader, caTemplate, caTemplate, caKey.Public(), caKey)
	if err != nil {
		return nil, err
	}
	ca, err := x509.ParseCertificate(caDER)
	if err != nil {
		return nil, err
	}
	issue := func(serial int64, name string, usage x509.ExtKeyUsage) (cert, key []byte, err error) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, nil, err
		}
		t := template(serial, name)
		t.ExtKeyUsage = []x509.ExtKeyUsage{usage}
		t.IPAddresses, t.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
		der, err := x509.CreateCertificate(rand.Reader, t, ca, k.Public(), caKey)
		if err != nil {
			return nil, nil, err
		}
		pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			return nil, nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
	}
	serverCert, serverKey, err := issue(2, "localhost", x509.ExtKeyUsageServerAuth)
	if err != nil {
		return nil, err
	}
	clientCert, clientKey, err := issue(3, "streamsql test client", x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, err
	}
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	c := &certificates{ca: filepath.Join(dir, "ca.pem"), serverStore: filepath.Join(dir, "server.pem"),
		clientCert: filepath.Join(dir, "client.pem"), clientKey: filepath.Join(dir, "client-key.pem")}
	for path, data := range map[string][]byte{c.ca: caPEM, c.serverStore: append(serverKey, serverCert...), c.clientCert: clientCert, c.clientKey: clientKey} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return nil, err
		}
	}
	pair, err := tls.X509KeyPair(clientCert, clientKey)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caPEM)
	c.config = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
	return c, nil
}

func template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
}
