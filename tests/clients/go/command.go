// One command line: its arguments, and the events that answer it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

type fields map[string]interface{}

type wanted struct {
	Body       string            `json:"body"`
	Tags       string            `json:"tags"`
	Keys       string            `json:"keys"`
	Properties map[string]string `json:"properties"`
	DelayLevel int               `json:"delay_level"`
	Shard      int               `json:"shard"`
}

type command struct {
	ID                int      `json:"id"`
	Do                string   `json:"do"`
	Target            int      `json:"target"`
	NameServer        string   `json:"namesrv"`
	Topic             string   `json:"topic"`
	Group             string   `json:"group"`
	Tags              string   `json:"tags"`
	SQL               string   `json:"sql"`
	Mode              string   `json:"mode"`
	Messages          []wanted `json:"messages"`
	RetryForMs        int      `json:"retry_for_ms"`
	PauseMs           int      `json:"pause_ms"`
	From              string   `json:"from"`
	Timestamp         string   `json:"timestamp"`
	Orderly           bool     `json:"orderly"`
	Broadcasting      bool     `json:"broadcasting"`
	Instance          string   `json:"instance"`
	Fail              int32    `json:"fail"`
	DelayLevel        int      `json:"delay_level"`
	MaxReconsumeTimes int32    `json:"max_reconsume_times"`
	AccessKey         string   `json:"access_key"`
	SecretKey         string   `json:"secret_key"`
}

var output sync.Mutex

func parse(line []byte) *command {
	c := &command{Tags: "*", MaxReconsumeTimes: -1}
	if err := json.Unmarshal(line, c); err != nil {
		panic(err)
	}
	return c
}

// instance is the name that the command gives, or one that no other client here has.
func (c *command) instance() string {
	if c.Instance != "" {
		return c.Instance
	}
	return fmt.Sprintf("%d-%d", os.Getpid(), c.ID)
}

func (c *command) resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver(strings.Split(c.NameServer, ";"))
}

func (c *command) credentials() primitive.Credentials {
	return primitive.Credentials{AccessKey: c.AccessKey, SecretKey: c.SecretKey}
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
	code := -1
	switch answer := err.(type) {
	case primitive.MQBrokerErr:
		code = int(answer.ResponseCode)
	case *primitive.MQBrokerErr:
		code = int(answer.ResponseCode)
	}
	return fields{"type": fmt.Sprintf("%T", err), "code": code, "error": err.Error()}
}

func describeMessage(m *primitive.MessageExt) fields {
	return fields{
		"body": string(m.Body), "topic": m.Topic, "queue": m.Queue.QueueId,
		"offset": m.QueueOffset, "msg_id": m.MsgId, "offset_msg_id": m.OffsetMsgId,
		"reconsume_times": m.ReconsumeTimes, "tags": m.GetTags(),
		"keys": m.GetKeys(), "properties": m.GetProperties(), "sys_flag": m.SysFlag,
		"born_ms": m.BornTimestamp, "stored_ms": m.StoreTimestamp,
		"at_ms": time.Now().UnixMilli(),
	}
}
