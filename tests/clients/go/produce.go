// The produce command: sends a list of messages in one of the client's ways.
package main

import (
	"context"
	"sort"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	sendTimeout = 10 * time.Second
	retryPause  = 200 * time.Millisecond
)

var statuses = map[primitive.SendStatus]string{
	primitive.SendOK:                "SEND_OK",
	primitive.SendFlushDiskTimeout:  "FLUSH_DISK_TIMEOUT",
	primitive.SendFlushSlaveTimeout: "FLUSH_SLAVE_TIMEOUT",
	primitive.SendSlaveNotAvailable: "SLAVE_NOT_AVAILABLE",
}

var (
	opening   sync.Mutex
	producers = map[string]rocketmq.Producer{}

	// The shards of messages that are being sent. Not a property of the message: it
	// would have to go before the message does, and the client selects a queue anew,
	// with the same message, each time that it tries again.
	shards sync.Map
)

// byShard sends a message to the queue that its shard number names, others in turn.
type byShard struct{ inTurn producer.QueueSelector }

func (s byShard) Select(
	m *primitive.Message, queues []*primitive.MessageQueue, last string,
) *primitive.MessageQueue {
	shard, ordered := shards.Load(m)
	if !ordered {
		return s.inTurn.Select(m, queues, last)
	}
	// The library has those of several brokers in any order.
	sorted := append([]*primitive.MessageQueue{}, queues...)
	sort.Slice(sorted, func(i, j int) bool {
		a, b := sorted[i], sorted[j]
		return a.BrokerName < b.BrokerName ||
			a.BrokerName == b.BrokerName && a.QueueId < b.QueueId
	})
	return sorted[shard.(int)%len(sorted)]
}

func openProducer(c *command) (rocketmq.Producer, error) {
	opening.Lock()
	defer opening.Unlock()
	key := c.NameServer + "|" + c.AccessKey
	if known := producers[key]; known != nil {
		return known, nil
	}
	opened, err := rocketmq.NewProducer(
		producer.WithNsResolver(c.resolver()),
		producer.WithCredentials(c.credentials()),
		producer.WithGroupName("agent-producer"),
		producer.WithInstanceName(c.instance()),
		producer.WithSendMsgTimeout(sendTimeout),
		producer.WithQueueSelector(byShard{producer.NewRoundRobinQueueSelector()}))
	if err != nil {
		return nil, err
	}
	if err := opened.Start(); err != nil {
		return nil, err
	}
	producers[key] = opened
	return opened, nil
}

func build(c *command, w wanted) *primitive.Message {
	m := primitive.NewMessage(c.Topic, []byte(w.Body))
	m.WithProperties(w.Properties)
	if w.Tags != "" {
		m.WithTag(w.Tags)
	}
	if w.Keys != "" {
		m.WithKeys([]string{w.Keys})
	}
	if w.DelayLevel > 0 {
		m.WithDelayTimeLevel(w.DelayLevel)
	}
	return m
}

func produce(c *command) error {
	p, err := openProducer(c)
	if err != nil {
		return err
	}
	switch c.Mode {
	case "batch":
		produceBatch(c, p)
	case "async":
		return produceAsync(c, p)
	case "oneway":
		for _, w := range c.Messages {
			if err := p.SendOneWay(context.Background(), build(c, w)); err != nil {
				c.failed(w, err)
			}
		}
	default:
		for _, w := range c.Messages {
			produceOne(c, p, w)
			time.Sleep(time.Duration(c.PauseMs) * time.Millisecond)
		}
	}
	return nil
}

func produceOne(c *command, p rocketmq.Producer, w wanted) {
	giveUp := time.Now().Add(time.Duration(c.RetryForMs) * time.Millisecond)
	for {
		m := build(c, w)
		if c.Mode == "ordered" {
			shards.Store(m, w.Shard)
		}
		result, err := p.SendSync(context.Background(), m)
		shards.Delete(m)
		if err == nil {
			c.sent(w, result)
			return
		}
		if time.Now().After(giveUp) {
			c.failed(w, err)
			return
		}
		time.Sleep(retryPause)
	}
}

func produceBatch(c *command, p rocketmq.Producer) {
	var messages []*primitive.Message
	var bodies []string
	for _, w := range c.Messages {
		messages = append(messages, build(c, w))
		bodies = append(bodies, w.Body)
	}
	result, err := p.SendSync(context.Background(), messages...)
	if err != nil {
		c.failed(c.Messages[0], err)
		return
	}
	c.emit("sent", sentFields(result, fields{"bodies": bodies}))
}

func produceAsync(c *command, p rocketmq.Producer) error {
	var open sync.WaitGroup
	for _, w := range c.Messages {
		w := w
		open.Add(1)
		err := p.SendAsync(context.Background(),
			func(_ context.Context, result *primitive.SendResult, err error) {
				defer open.Done()
				if err != nil {
					c.failed(w, err)
				} else {
					c.sent(w, result)
				}
			}, build(c, w))
		if err != nil {
			return err
		}
	}
	open.Wait()
	return nil
}

func (c *command) sent(w wanted, result *primitive.SendResult) {
	c.emit("sent", sentFields(result, fields{"body": w.Body}))
}

func (c *command) failed(w wanted, err error) {
	failure := describeError(err)
	failure["body"] = w.Body
	c.emit("failed", failure)
}

func sentFields(result *primitive.SendResult, more fields) fields {
	more["status"] = statuses[result.Status]
	more["topic"] = result.MessageQueue.Topic
	more["broker"] = result.MessageQueue.BrokerName
	more["queue"] = result.MessageQueue.QueueId
	more["offset"] = result.QueueOffset
	more["msg_id"] = result.MsgID
	more["offset_msg_id"] = result.OffsetMsgID
	return more
}
