// Runs RocketMQ clients on command: JSON lines in, JSON lines out. See ../README.md.
package main

import (
	"bufio"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const longestCommandBytes = 64 << 20

var actions = map[string]func(*command) error{
	"produce":  produce,
	"consume":  consume,
	"poll":     poll,
	"request":  request,
	"answer":   answer,
	"stop":     stop,
	"transact": transact,
}

// running holds the consumers that go on until a stop command names them.
var running sync.Map

func main() {
	rlog.SetLogLevel("fatal")
	deadline, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	time.AfterFunc(time.Duration(deadline)*time.Second, func() { os.Exit(3) })
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestCommandBytes)
	for lines.Scan() {
		go run(parse(lines.Bytes()))
	}
}

func run(c *command) {
	if err := actions[c.Do](c); err != nil {
		c.emit("error", describeError(err))
		return
	}
	c.emit("done", fields{})
}

func stop(c *command) error {
	if shutdown, known := running.LoadAndDelete(c.Target); known {
		return shutdown.(func() error)()
	}
	return nil
}
