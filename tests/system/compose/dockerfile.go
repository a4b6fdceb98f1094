package main

import (
	"fmt"
	"io"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

type stage struct {
	Name         string
	Base         string
	Instructions []instruction
}

type instruction struct {
	Name   string
	Fields instructions.Command
	Mounts []*instructions.Mount `json:",omitempty"`
}

// readDockerfile parses as a build would, each instruction's flags and arguments too.
// What BuildKit only warns of is refused.
func readDockerfile(file io.Reader) (any, error) {
	parsed, err := parser.Parse(file)
	if err != nil {
		return nil, err
	}
	for _, warning := range parsed.Warnings {
		return nil, fmt.Errorf("line %d: %s", warning.Location.Start.Line, warning.Short)
	}
	built, _, err := instructions.Parse(parsed.AST)
	if err != nil {
		return nil, err
	}
	stages := []stage{}
	for _, one := range built {
		commands := []instruction{}
		for _, command := range one.Commands {
			mounts, err := mountsOf(command)
			if err != nil {
				return nil, err
			}
			commands = append(commands, instruction{command.Name(), command, mounts})
		}
		stages = append(stages, stage{one.Name, one.BaseName, commands})
	}
	return stages, nil
}

// mountsOf reads what BuildKit leaves for the time when variables are known.
func mountsOf(command instructions.Command) ([]*instructions.Mount, error) {
	run, isRun := command.(*instructions.RunCommand)
	if !isRun {
		return nil, nil
	}
	asItIs := func(word string) (string, error) { return word, nil }
	if err := run.Expand(asItIs); err != nil {
		return nil, err
	}
	return instructions.GetMounts(run), nil
}
