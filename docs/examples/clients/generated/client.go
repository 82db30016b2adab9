// As client.go, with the client that oapi-codegen has generated as the package api.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"clients/api"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	topic := os.Getenv("REDELAYED_TOPIC")
	client := connect(os.Getenv("REDELAYED_KEY"))

	started := time.Now()
	id, delay := "close:7", int64(500)
	message := api.MessageInput{Id: &id, Delay: &delay, Body: map[string]int{"order": 7}}
	pushed, err := client.PushMessageWithResponse(ctx, topic, nil, message)
	must(err)
	check(pushed.JSON201 != nil && pushed.JSON201.Outcome == api.Added, string(pushed.Body))
	again, err := client.PushMessageWithResponse(ctx, topic, nil, message)
	must(err)
	check(again.JSON200 != nil && again.JSON200.Outcome == api.Kept, string(again.Body))

	wait := int64(20_000)
	received, err := client.ReceiveMessagesWithResponse(ctx, topic, api.ReceiveInput{Wait: &wait})
	must(err)
	check(time.Since(started) > 490*time.Millisecond, "it came before it was due")
	check(received.JSON200 != nil && len(received.JSON200.Messages) == 1, string(received.Body))
	first := received.JSON200.Messages[0]
	body, _ := first.Body.(map[string]any)
	check(first.Id == id && first.Attempt == 1 && body["order"] == 7.0, string(received.Body))

	leases := api.AcknowledgeInput{Leases: []string{first.Lease}}
	for _, expected := range []string{"ok", "lost"} {
		answer, err := client.AcknowledgeWithResponse(ctx, leases)
		must(err)
		check(answer.JSON200 != nil && string(answer.JSON200.Results[0]) == expected, string(answer.Body))
	}

	refused, err := connect("no key").PushMessageWithResponse(ctx, topic, nil, api.MessageInput{})
	must(err)
	problem := refused.ApplicationproblemJSON4XX
	check(problem != nil && problem.Code == "unauthorized", string(refused.Body))

	log.SetFlags(0)
	log.SetOutput(os.Stdout)
	log.Print("pushed, received after its delay, acknowledged")
}

func connect(key string) *api.ClientWithResponses {
	client, err := api.NewClientWithResponses(os.Getenv("REDELAYED_SERVICE"),
		api.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", "Bearer "+key)
			return nil
		}))
	must(err)
	return client
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func check(holds bool, otherwise string) {
	if !holds {
		log.Fatal(otherwise)
	}
}
