// Pushes a message with a delay, receives it when it is due, and acknowledges it. Standard library only.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

// Problem is what the service refused; its code stays the same between versions.
type Problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s %s", p.Status, p.Code, p.Title, p.Detail) }

// Client calls the delay service.
type Client struct {
	url, key string
	http     http.Client
}

func (c *Client) call(path string, body, answer any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest("POST", c.url+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		problem := &Problem{Status: response.StatusCode}
		_ = json.NewDecoder(response.Body).Decode(problem)
		return problem
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

type order struct {
	Order int `json:"order"`
}

type pushed struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
}

type received struct {
	Messages []struct {
		ID      string `json:"id"`
		Lease   string `json:"lease"`
		Attempt int    `json:"attempt"`
		Body    order  `json:"body"`
	} `json:"messages"`
}

type answered struct {
	Results []string `json:"results"`
}

type object map[string]any

func main() {
	log.SetFlags(0)
	topic := "/v1/topics/" + environment("REDELAYED_TOPIC", "orders")
	client := &Client{
		url: environment("REDELAYED_SERVICE", "http://127.0.0.1:8080"),
		key: os.Getenv("REDELAYED_KEY"),
		// longer than the wait of a receive
		http: http.Client{Timeout: 30 * time.Second},
	}
	started := time.Now()

	var push pushed
	must(client.call(topic+"/messages", object{"id": "close:7", "delay": 500, "body": order{7}}, &push))
	check(push.Outcome == "added", "it was not added")

	// under the same id a push can be repeated: what is there stays
	must(client.call(topic+"/messages", object{"id": "close:7", "delay": 500}, &push))
	check(push.Outcome == "kept", "it was not kept")

	var batch received
	must(client.call(topic+"/receive", object{"wait": 20_000}, &batch))
	check(time.Since(started) > 490*time.Millisecond, "it came before it was due")
	check(len(batch.Messages) == 1, "it did not come")
	message := batch.Messages[0]
	check(message.ID == "close:7" && message.Body.Order == 7 && message.Attempt == 1, "another message came")

	for _, expected := range []string{"ok", "lost"} {
		var answer answered
		must(client.call("/v1/leases/acknowledge", object{"leases": []string{message.Lease}}, &answer))
		check(len(answer.Results) == 1 && answer.Results[0] == expected, "the lease was not "+expected)
	}

	stranger := &Client{url: client.url, key: "no key"}
	problem, isProblem := stranger.call(topic+"/messages", object{}, &push).(*Problem)
	check(isProblem && problem.Status == 401 && problem.Code == "unauthorized", "a wrong key was taken")

	fmt.Println("pushed, received after its delay, acknowledged")
}

func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
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
