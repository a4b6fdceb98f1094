package main

import (
	"bufio"
	"io"
	"os"

	"github.com/moby/buildkit/frontend/dockerfile/dockerignore"
	"github.com/moby/patternmatcher"
)

// readContext takes names of files, a line each, and gives back those that a build gets.
func readContext(file io.Reader) (any, error) {
	patterns, err := dockerignore.ReadAll(file)
	if err != nil {
		return nil, err
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		return nil, err
	}
	kept := []string{}
	names := bufio.NewScanner(os.Stdin)
	for names.Scan() {
		ignored, err := matcher.MatchesOrParentMatches(names.Text())
		if err != nil {
			return nil, err
		}
		if !ignored {
			kept = append(kept, names.Text())
		}
	}
	return kept, names.Err()
}
