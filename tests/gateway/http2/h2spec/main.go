// Runs h2spec against a server on a port of this machine; its report goes to stdout.
package main

import (
	"os"
	"strconv"
	"time"

	"github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	passed, err := h2spec.Run(&config.Config{
		Host:         "127.0.0.1",
		Port:         port,
		Path:         "/echo",
		Timeout:      10 * time.Second,
		MaxHeaderLen: 4000,
	})
	if err != nil {
		panic(err)
	}
	if !passed {
		os.Exit(1)
	}
}
