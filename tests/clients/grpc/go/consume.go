// The consume and poll commands: consumers that run until they are stopped.
package main

import (
	"context"
	"strings"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

const (
	batch = 16
	wait  = 5 * time.Second
)

func (c *command) subscriptions() map[string]*rmq.FilterExpression {
	filter := rmq.NewFilterExpression(c.Tags)
	if c.SQL != "" {
		filter = rmq.NewFilterExpressionWithType(c.SQL, rmq.SQL92)
	}
	return map[string]*rmq.FilterExpression{c.Topic: filter}
}

func push(c *command) error {
	listen := func(m *rmq.MessageView) rmq.ConsumerResult {
		if c.accept(m) {
			return rmq.SUCCESS
		}
		return rmq.FAILURE
	}
	opened, err := rmq.NewPushConsumer(
		c.config(),
		rmq.WithPushAwaitDuration(wait),
		rmq.WithPushSubscriptionExpressions(c.subscriptions()),
		rmq.WithPushMessageListener(&rmq.FuncMessageListener{Consume: listen}))
	if err != nil {
		return err
	}
	opened.SetRequestTimeout(requestTimeout)
	if err := opened.Start(); err != nil {
		return err
	}
	running.Store(c.ID, opened.GracefulStop)
	return nil
}

// poll acknowledges what it accepts, and keeps the rest for change_ms only.
func poll(c *command) error {
	opened, err := rmq.NewSimpleConsumer(
		c.config(),
		rmq.WithSimpleAwaitDuration(wait),
		rmq.WithSimpleSubscriptionExpressions(c.subscriptions()))
	if err != nil {
		return err
	}
	opened.SetRequestTimeout(requestTimeout)
	if err := opened.Start(); err != nil {
		return err
	}
	running.Store(c.ID, opened.GracefulStop)
	go c.receive(opened)
	return nil
}

func (c *command) receive(opened rmq.SimpleConsumer) {
	invisible := time.Duration(c.InvisibleMs) * time.Millisecond
	change := time.Duration(c.ChangeMs) * time.Millisecond
	for {
		if _, runs := running.Load(c.ID); !runs {
			return
		}
		// It fails where nothing came, too: what comes next shows.
		messages, _ := opened.Receive(context.Background(), batch, invisible)
		for _, m := range messages {
			var err error
			if c.accept(m) {
				err = opened.Ack(context.Background(), m)
			} else {
				err = opened.ChangeInvisibleDuration(m, change)
			}
			if err != nil {
				c.emit("missed", describeError(err))
			}
		}
	}
}

func (c *command) accept(m *rmq.MessageView) bool {
	accepted := m.GetDeliveryAttempt() > c.Fail
	received := describe(m)
	received["accepted"] = accepted
	c.emit("received", received)
	return accepted
}

func describe(m *rmq.MessageView) fields {
	return fields{
		"body": string(m.GetBody()), "topic": m.GetTopic(), "msg_id": m.GetMessageId(),
		"tags": m.GetTag(), "keys": strings.Join(m.GetKeys(), " "),
		"properties": m.GetProperties(), "group": m.GetMessageGroup(),
		"attempt": m.GetDeliveryAttempt(), "at_ms": time.Now().UnixMilli(),
	}
}
