package main

import (
	"io"

	"github.com/compose-spec/compose-go/loader"
	"github.com/compose-spec/compose-go/types"
)

// readCompose checks against the specification's schema and for what is named and not
// there. The environment is empty, so that nothing depends on the machine.
func readCompose(file io.Reader) (any, error) {
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	return loader.Load(types.ConfigDetails{
		WorkingDir:  "/",
		ConfigFiles: []types.ConfigFile{{Filename: "docker-compose.yml", Content: content}},
		Environment: types.Mapping{},
	})
}
