// Runs RocketMQ 5's gRPC clients on command: JSON lines in, JSON lines out. See ../README.md.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

const longestCommandBytes = 64 << 20

// By default 3 s, as long as a loaded machine may stand still.
const requestTimeout = 30 * time.Second

type fields map[string]interface{}

type wanted struct {
	Body       string            `json:"body"`
	Tags       string            `json:"tags"`
	Keys       string            `json:"keys"`
	Properties map[string]string `json:"properties"`
	Group      string            `json:"group"`
	DelayMs    int               `json:"delay_ms"`
}

type command struct {
	ID          int      `json:"id"`
	Do          string   `json:"do"`
	Target      int      `json:"target"`
	NameServer  string   `json:"namesrv"`
	Topic       string   `json:"topic"`
	Group       string   `json:"group"`
	Tags        string   `json:"tags"`
	SQL         string   `json:"sql"`
	Messages    []wanted `json:"messages"`
	Fail        int32    `json:"fail"`
	InvisibleMs int      `json:"invisible_ms"`
	ChangeMs    int      `json:"change_ms"`
}

var actions = map[string]func(*command) error{
	"produce":  produce,
	"transact": transact,
	"consume":  push,
	"poll":     poll,
	"stop":     stop,
}

var (
	output sync.Mutex
	// running holds the clients that go on until a stop command names them.
	running sync.Map
)

func main() {
	deadline, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	time.AfterFunc(time.Duration(deadline)*time.Second, func() { os.Exit(3) })
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestCommandBytes)
	for lines.Scan() {
		c := &command{Tags: "*", InvisibleMs: 60_000}
		if err := json.Unmarshal(lines.Bytes(), c); err != nil {
			panic(err)
		}
		go run(c)
	}
}

func run(c *command) {
	if err := actions[c.Do](c); err != nil {
		c.emit("error", describeError(err))
		return
	}
	c.emit("done", fields{})
}

// stop: a consumer ends when its last long poll has, and nobody waits for that.
func stop(c *command) error {
	shutdown, _ := running.LoadAndDelete(c.Target)
	go shutdown.(func() error)()
	return nil
}

func (c *command) config() *rmq.Config {
	return &rmq.Config{
		Endpoint:      c.NameServer,
		ConsumerGroup: c.Group,
		Credentials:   &credentials.SessionCredentials{},
	}
}

func (c *command) emit(event string, more fields) {
	line := fields{"id": c.ID, "event": event}
	for name, value := range more {
		line[name] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	fmt.Fprintf(os.Stdout, "%s\n", text)
}

func describeError(err error) fields {
	return fields{"type": fmt.Sprintf("%T", err), "code": -1, "error": err.Error()}
}
