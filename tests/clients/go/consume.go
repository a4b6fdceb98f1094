// The consume and poll commands: consumers that run until they are stopped.
package main

import (
	"context"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const (
	pollTimeout = 500 * time.Millisecond
	suspendMs   = 200
)

var fromWhere = map[string]consumer.ConsumeFromWhere{
	"":             consumer.ConsumeFromFirstOffset,
	"FIRST_OFFSET": consumer.ConsumeFromFirstOffset,
	"LAST_OFFSET":  consumer.ConsumeFromLastOffset,
	"TIMESTAMP":    consumer.ConsumeFromTimestamp,
}

func (c *command) options() []consumer.Option {
	options := []consumer.Option{
		consumer.WithNsResolver(c.resolver()),
		consumer.WithCredentials(c.credentials()),
		consumer.WithGroupName(c.Group),
		consumer.WithInstance(c.instance()),
		consumer.WithConsumeFromWhere(fromWhere[c.From]),
		consumer.WithMaxReconsumeTimes(c.MaxReconsumeTimes),
		consumer.WithConsumerOrder(c.Orderly),
	}
	if c.Broadcasting {
		options = append(options, consumer.WithConsumerModel(consumer.BroadCasting))
	}
	if c.Timestamp != "" {
		options = append(options, consumer.WithConsumeTimestamp(c.Timestamp))
	}
	return options
}

func (c *command) selector() consumer.MessageSelector {
	if c.SQL != "" {
		return consumer.MessageSelector{Type: consumer.SQL92, Expression: c.SQL}
	}
	return consumer.MessageSelector{Type: consumer.TAG, Expression: c.Tags}
}

func consume(c *command) error {
	opened, err := rocketmq.NewPushConsumer(c.options()...)
	if err != nil {
		return err
	}
	if err := opened.Subscribe(c.Topic, c.selector(), c.listen); err != nil {
		return err
	}
	if err := opened.Start(); err != nil {
		return err
	}
	running.Store(c.ID, opened.Shutdown)
	return nil
}

func (c *command) listen(
	ctx context.Context, messages ...*primitive.MessageExt,
) (consumer.ConsumeResult, error) {
	all := true
	for _, m := range messages {
		accepted := m.ReconsumeTimes >= c.Fail
		received := describeMessage(m)
		received["accepted"] = accepted
		c.emit("received", received)
		all = all && accepted
	}
	if all {
		return consumer.ConsumeSuccess, nil
	}
	if c.Orderly {
		if orderly, known := primitive.GetOrderlyCtx(ctx); known {
			orderly.SuspendCurrentQueueTimeMillis = suspendMs
		}
		return consumer.SuspendCurrentQueueAMoment, nil
	}
	if concurrent, known := primitive.GetConcurrentlyCtx(ctx); known {
		concurrent.DelayLevelWhenNextConsume = c.DelayLevel
	}
	return consumer.ConsumeRetryLater, nil
}

func poll(c *command) error {
	opened, err := rocketmq.NewPullConsumer(c.options()...)
	if err != nil {
		return err
	}
	if err := opened.Subscribe(c.Topic, c.selector()); err != nil {
		return err
	}
	if err := opened.Start(); err != nil {
		return err
	}
	closing := make(chan bool)
	go func() {
		for {
			select {
			case <-closing:
				return
			default:
			}
			polled, err := opened.Poll(context.Background(), pollTimeout)
			if err != nil {
				continue
			}
			for _, m := range polled.GetMsgList() {
				c.emit("received", describeMessage(m))
			}
			opened.ACK(context.Background(), polled, consumer.ConsumeSuccess)
		}
	}()
	running.Store(c.ID, func() error {
		closing <- true
		return opened.Shutdown()
	})
	return nil
}
