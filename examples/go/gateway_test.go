// Starts a Ropeway gateway for a test: copy this file into your module.
package orders

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 2 * time.Minute
	stopTimeout  = 20 * time.Second
)

var advertised = regexp.MustCompile(`advertised as (\S+)\n`)

// startGateway runs a gateway until the test ends, and returns its name server's address.
// It is the command that ROPEWAY_COMMAND names, or `ropeway` of PATH. The options are those
// of `ropeway serve`. The log is shown where the test fails.
func startGateway(t testing.TB, options ...string) string {
	t.Helper()
	command := os.Getenv("ROPEWAY_COMMAND")
	if command == "" {
		command = "ropeway"
	}
	folder := t.TempDir()
	ready := filepath.Join(folder, "ready")
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	gateway := exec.Command(command, append([]string{
		"serve", "--listen=127.0.0.1:0",
		"--data=" + filepath.Join(folder, "data"), "--ready-file=" + ready,
	}, options...)...)
	gateway.Stdout, gateway.Stderr = log, log
	if err := gateway.Start(); err != nil {
		t.Fatalf("%v; install Ropeway, or name its command in ROPEWAY_COMMAND", err)
	}
	ended := make(chan struct{})
	go func() {
		gateway.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		gateway.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(stopTimeout):
			gateway.Process.Kill()
			<-ended
		}
		log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("ropeway:\n%s", text)
		}
	})
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		text, _ := os.ReadFile(ready)
		if found := advertised.FindSubmatch(text); found != nil {
			return string(found[1])
		}
		select {
		case <-ended:
			t.Fatal("the gateway did not start")
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("the gateway did not answer in %s", startTimeout)
	return ""
}
