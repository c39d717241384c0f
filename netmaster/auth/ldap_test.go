package auth_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/netx/netxtest"
	"github.com/contiv/netplugin/utils/pki/pkitest"
)

const slapdConfig = `
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
include /etc/ldap/schema/nis.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
pidfile %[1]s/pid
TLSCertificateFile %[1]s/cert.pem
TLSCertificateKeyFile %[1]s/key.pem
database mdb
suffix "dc=example,dc=com"
rootdn "cn=manager,dc=example,dc=com"
rootpw manager-secret
directory %[1]s/data
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by * read
`

const people = `
dn: dc=example,dc=com
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: ou=people,dc=example,dc=com
objectClass: organizationalUnit
ou: people

dn: uid=jane,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: jane
cn: Jane
sn: Doe
userPassword: jane-secret

dn: uid=odd\2C (name)*,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: odd, (name)*
cn: Odd
sn: Name
userPassword: odd-secret

dn: uid=twin,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: twin
cn: Twin
sn: One
userPassword: twin-secret

dn: cn=Twin Two,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: twin
cn: Twin Two
sn: Two
userPassword: twin-secret

dn: cn=Blue Team,dc=example,dc=com
objectClass: groupOfNames
cn: Blue Team
member: uid=jane,ou=people,dc=example,dc=com
member: uid=odd\2C (name)*,ou=people,dc=example,dc=com

dn: cn=watchers,dc=example,dc=com
objectClass: posixGroup
cn: watchers
gidNumber: 10
memberUid: jane
`

// directory is an OpenLDAP server of a test.
type directory struct {
	t    *testing.T
	dir  string
	ca   string // PEM
	port int    // LDAP
	tls  int    // LDAPS
	cmd  *exec.Cmd
}

// slapd starts OpenLDAP on loopback until the test ends.
func slapd(t *testing.T) *directory {
	t.Helper()
	d := &directory{t: t, dir: t.TempDir()}
	d.port, d.tls = port(t), port(t)
	d.certificate()
	d.write("slapd.conf", fmt.Sprintf(slapdConfig, d.dir))
	d.write("people.ldif", people)
	if err := os.Mkdir(filepath.Join(d.dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("/usr/sbin/slapadd", "-f", d.path("slapd.conf"), "-l", d.path("people.ldif")).CombinedOutput(); err != nil {
		t.Fatalf("slapadd: %v\n%s", err, out)
	}
	d.start()
	t.Cleanup(d.stop)
	return d
}

func port(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(netxtest.FreePort(t))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (d *directory) path(name string) string { return filepath.Join(d.dir, name) }

func (d *directory) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(d.path(name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *directory) start() {
	d.t.Helper()
	d.cmd = exec.Command("/usr/sbin/slapd", "-d", "0", "-f", d.path("slapd.conf"), "-h", fmt.Sprintf("ldap://127.0.0.1:%d ldaps://127.0.0.1:%d", d.port, d.tls))
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	eventually.Succeeds(d.t, "slapd listens", func() error {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", d.tls))
		if err == nil {
			conn.Close()
		}
		return err
	})
}

func (d *directory) stop() {
	if d.cmd != nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		d.cmd = nil
	}
}

// certificate makes a certificate for the name ldap.example.com.
func (d *directory) certificate() {
	d.t.Helper()
	pair := pkitest.For(d.t, "ldap.example.com")
	d.ca = pair.CA
	d.write("cert.pem", pair.Certificate)
	d.write("key.pem", pair.Key)
}

// configuration is what PUT ldap_configuration/ gets, with changes.
func (d *directory) configuration(edit map[string]any) string {
	c := map[string]any{
		"server": "127.0.0.1", "port": d.port, "base_dn": "dc=example,dc=com", "service_account_dn": "cn=manager,dc=example,dc=com",
		"service_account_password": "manager-secret", "start_tls": true, "tls_cert_issued_to": "ldap.example.com", "ca": d.ca,
	}
	for k, v := range edit {
		c[k] = v
	}
	text, _ := json.Marshal(c)
	return string(text)
}

// sealer hides secrets as well as a test needs.
type sealer struct{}

func (sealer) Seal(secret []byte) (string, error) { return fmt.Sprintf("sealed:%x", secret), nil }

func (sealer) Open(sealed string) ([]byte, error) {
	var out []byte
	_, err := fmt.Sscanf(sealed, "sealed:%x", &out)
	return out, err
}

func withSealer(c *auth.Config) { c.Sealer = sealer{} }

// TestLDAP: users of a directory log in by password, and have the roles of their groups.
func TestLDAP(t *testing.T) {
	d := slapd(t)
	store := memory.New()
	sv := start(t, store, withSealer)
	sv.user("local", "local-secret", "viewer")
	sv.want(404, "GET", "ldap_configuration/", root, "")
	sv.want(404, "PATCH", "ldap_configuration/", root, `{"port":1}`)
	sv.want(401, "POST", "login/", "", credentials("jane", "jane-secret"))
	got := sv.want(200, "PUT", "ldap_configuration/", root, d.configuration(nil))
	if again := sv.want(200, "GET", "ldap_configuration/", root, ""); again.body != got.body || strings.Contains(got.body, "password") {
		t.Errorf("configuration: %s, then %s", got.body, again.body)
	}
	if strings.Contains(dump(t, store), "manager-secret") {
		t.Error("the password of the service account is in the store")
	}
	sv.want(201, "POST", "authorizations/", root, `{"principalName":"CN=blue team, DC=example,DC=com","local":false,"role":"ops","tenantName":"blue"}`)
	sv.want(201, "POST", "authorizations/", root, `{"principalName":"cn=watchers,dc=example,dc=com","role":"viewer"}`)
	jane := sv.login("jane", "jane-secret")
	if got := sv.grants(jane); got != "ops:blue viewer" {
		t.Errorf("jane may %q", got)
	}
	if got := sv.grants(sv.login("odd, (name)*", "odd-secret")); got != "ops:blue" {
		t.Errorf("a name that needs escaping may %q", got)
	}
	for _, bad := range [][2]string{
		{"jane", "wrong"},
		{"jane*", "jane-secret"},
		{"*", "jane-secret"},
		{"jane)(uid=*", "jane-secret"},
		{"nobody", "x"},
		{"twin", "twin-secret"},
		{"uid=jane,ou=people,dc=example,dc=com", "jane-secret"},
		{"local", "jane-secret"},
	} {
		sv.want(401, "POST", "login/", "", credentials(bad[0], bad[1]))
	}
	sv.want(403, "PATCH", "local_users/local/", jane, `{"password":"taken-over"}`)
	sv.want(403, "POST", "tokens/", jane, `{"name":"x","role":"viewer"}`)

	// The service account's password is not sent to another server.
	sv.want(400, "PATCH", "ldap_configuration/", root, `{"server":"192.0.2.1"}`)
	sv.want(400, "PATCH", "ldap_configuration/", root, `{"start_tls":false}`)
	sv.want(400, "PATCH", "ldap_configuration/", root, `{"insecure_skip_verify":true}`)
	sv.want(200, "PATCH", "ldap_configuration/", root, `{"base_dn":"ou=people,dc=example,dc=com"}`)
	for name, edit := range map[string]map[string]any{
		"LDAPS": {"port": d.tls, "tls": true, "start_tls": false}, "plain": {"start_tls": false}, "unverified": {"ca": "", "insecure_skip_verify": true},
	} {
		sv.want(200, "PUT", "ldap_configuration/", root, d.configuration(edit))
		if got := sv.call("POST", "login/", "", credentials("jane", "jane-secret")); got.status != 200 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	for name, edit := range map[string]map[string]any{
		"a certificate of another name":           {"tls_cert_issued_to": "other.example.com"},
		"a certificate of nobody that counts":     {"ca": ""},
		"a service account with a wrong password": {"service_account_password": "wrong"},
	} {
		sv.want(200, "PUT", "ldap_configuration/", root, d.configuration(edit))
		if got := sv.want(503, "POST", "login/", "", credentials("jane", "jane-secret")); !strings.Contains(got.body, fmt.Sprint("127.0.0.1:", d.port)) {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	sv.want(200, "GET", "whoami/", jane, "")
	sv.want(204, "DELETE", "ldap_configuration/", root, "")
	sv.want(401, "POST", "login/", "", credentials("jane", "jane-secret"))
}

// TestLDAPIsDown: local users get in, others are told which server does not answer, and
// nobody has to wait for it.
func TestLDAPIsDown(t *testing.T) {
	d := slapd(t)
	sv := start(t, memory.New(), withSealer)
	sv.want(200, "PUT", "ldap_configuration/", root, d.configuration(nil))
	sv.login("jane", "jane-secret")
	d.stop()
	for range 12 {
		if got := sv.want(503, "POST", "login/", "", credentials("jane", "jane-secret")); !strings.Contains(got.body, fmt.Sprint("the LDAP server 127.0.0.1:", d.port)) {
			t.Fatalf("without the server: %s", got.body)
		}
	}
	sv.login("admin", sv.first)
	d.start()
	sv.login("jane", "jane-secret")
}
