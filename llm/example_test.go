package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"parley/llm"
)

// A Model is anything that answers. Layers around a model are models too.
func ExampleModel() {
	echo := llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		return &llm.Response{Text: "you said: " + req.Messages[0].Text(), Finish: llm.FinishStop}, nil
	})
	loud := func(next llm.Model) llm.Model {
		return llm.Func(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
			res, err := next.Ask(ctx, req)
			if err == nil {
				res.Text += "!"
			}
			return res, err
		})
	}
	res, err := loud(echo).Ask(context.Background(), &llm.Request{
		Model:    "lab/echo",
		Messages: []llm.Message{llm.User("hello")},
	})
	fmt.Println(res.Text, err)
	// Output: you said: hello! <nil>
}

// Kind distinguishes failures.
func ExampleError() {
	busy := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
		return nil, &llm.Error{Kind: llm.KindOverloaded, Status: 529, Provider: "lab", Model: "large", Message: "try later"}
	})
	_, err := busy.Ask(context.Background(), &llm.Request{})
	var e *llm.Error
	fmt.Println(errors.As(err, &e) && e.Kind.Retryable())
	fmt.Println(err)
	// Output:
	// true
	// lab/large: overloaded (529): try later
}

// The digest tells questions apart by what can change their answer.
func ExampleRequest_Digest() {
	ask := llm.Request{Model: "lab/large", Messages: []llm.Message{llm.User("heads or tails?")}}
	urgent, second := ask, ask
	urgent.Order = -1 // served first: the same question
	second.Sample = 1 // another draw: another question
	fmt.Println(ask.Digest() == urgent.Digest(), ask.Digest() == second.Digest())
	// Output: true false
}

// Messages are written as OpenAI's chat completions write them.
func ExampleMessage() {
	b, _ := json.Marshal([]llm.Message{llm.System("be brief"), llm.User("hi")})
	fmt.Println(string(b))
	// Output: [{"role":"system","content":"be brief"},{"role":"user","content":"hi"}]
}

// Sums of money are exact, in any order.
func ExampleMoney() {
	token := llm.Dollars(0.05) / 1_000_000 // at five cents a million
	fmt.Println(1000*token, 3*llm.Dollar/2)
	// Output: $0.00005 $1.50
}
