// The request and answer commands: messages that wait for a reply, and their replies.
package main

import (
	"context"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const requestTimeout = time.Minute

// request sends each message and waits for its reply.
func request(c *command) error {
	p, err := openProducer(c)
	if err != nil {
		return err
	}
	for _, w := range c.Messages {
		reply, err := p.Request(context.Background(), requestTimeout, build(c, w))
		if err != nil {
			return err
		}
		c.emit("replied", fields{
			"body": w.Body, "reply": string(reply.Body), "topic": reply.Topic,
			"properties": reply.GetProperties(),
		})
	}
	return nil
}

// answer consumes a topic and replies to each message with its body behind "re: ".
func answer(c *command) error {
	p, err := openProducer(c)
	if err != nil {
		return err
	}
	opened, err := rocketmq.NewPushConsumer(c.options()...)
	if err != nil {
		return err
	}
	listen := func(
		_ context.Context, messages ...*primitive.MessageExt,
	) (consumer.ConsumeResult, error) {
		for _, m := range messages {
			c.reply(p, m)
		}
		return consumer.ConsumeSuccess, nil
	}
	if err := opened.Subscribe(c.Topic, c.selector(), listen); err != nil {
		return err
	}
	if err := opened.Start(); err != nil {
		return err
	}
	running.Store(c.ID, opened.Shutdown)
	return nil
}

func (c *command) reply(p rocketmq.Producer, m *primitive.MessageExt) {
	w := wanted{Body: "re: " + string(m.Body)}
	reply, err := consumer.CreateReplyMessage(m, nil)
	if err != nil {
		c.failed(w, err)
		return
	}
	// The library makes properties of the body that it is given, and no body.
	reply.Body = []byte(w.Body)
	result, err := p.SendSync(context.Background(), reply)
	if err != nil {
		c.failed(w, err)
		return
	}
	c.sent(w, result)
}
