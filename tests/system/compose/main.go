// Reads a Dockerfile, a .dockerignore or a docker-compose.yml as BuildKit and Compose
// do, and prints what they understood as JSON. What they refuse ends it with exit code 1.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

var readers = map[string]func(io.Reader) (any, error){
	"compose":    readCompose,
	"dockerfile": readDockerfile,
	"context":    readContext,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 2 || readers[arguments[0]] == nil {
		return fmt.Errorf("arguments %q; allowed: compose, dockerfile or context, and a file", arguments)
	}
	file, err := os.Open(arguments[1])
	if err != nil {
		return err
	}
	defer file.Close()
	understood, err := readers[arguments[0]](file)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(understood)
}
