package orders

import (
	"context"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

func TestAnOrderThatIsSentIsReceived(t *testing.T) {
	nameServer := primitive.NewPassthroughResolver(
		[]string{startGateway(t, "--topic=orders")},
	)
	sender, err := rocketmq.NewProducer(
		producer.WithNsResolver(nameServer), producer.WithGroupName("billing"),
		producer.WithSendMsgTimeout(time.Minute),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.Start(); err != nil {
		t.Fatal(err)
	}
	defer sender.Shutdown()
	message := primitive.NewMessage("orders", []byte("one coffee"))
	if _, err := sender.SendSync(context.Background(), message); err != nil {
		t.Fatal(err)
	}

	received := make(chan string, 1)
	receiver, err := rocketmq.NewPushConsumer(
		consumer.WithNsResolver(nameServer), consumer.WithGroupName("kitchen"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	)
	if err != nil {
		t.Fatal(err)
	}
	err = receiver.Subscribe("orders", consumer.MessageSelector{}, func(
		_ context.Context, messages ...*primitive.MessageExt,
	) (consumer.ConsumeResult, error) {
		received <- string(messages[0].Body)
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	defer receiver.Shutdown()
	select {
	case body := <-received:
		if body != "one coffee" {
			t.Fatalf("received %q", body)
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing was received")
	}
}
