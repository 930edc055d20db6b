// Command clients carries out calls that come in lines, by the client that oapi-codegen made, and answers each in a line.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"

	"github.com/fila-mq/fila/tools/clients/filaclient"
)

type call struct {
	Operation  string
	InPath     []string
	Parameters map[string]map[string]json.RawMessage
	Body       json.RawMessage
	Raw        []byte
	Stream     bool
	Keyless    bool
}

type answer struct {
	Status  int             `json:"status"`
	Data    any             `json:"data,omitempty"`
	Problem json.RawMessage `json:"problem,omitempty"`
}

var (
	contextType = reflect.TypeFor[context.Context]()
	readerType  = reflect.TypeFor[io.Reader]()
)

// arguments makes what the method takes: path parameters by their order, the others and the body by their types.
func arguments(method reflect.Value, asked call) ([]reflect.Value, error) {
	kind, inPath := method.Type(), asked.InPath
	var found []reflect.Value
	for number := range kind.NumIn() - 1 { // the last ones edit a request
		in := kind.In(number)
		switch {
		case in == contextType:
			found = append(found, reflect.ValueOf(context.Background()))
		case in == readerType:
			found = append(found, reflect.ValueOf(io.Reader(bytes.NewReader(asked.Raw))))
		case in.Kind() == reflect.String && len(inPath) > 0:
			value := reflect.New(in)
			if err := json.Unmarshal(asked.Parameters["path"][inPath[0]], value.Interface()); err != nil {
				return nil, err
			}
			found, inPath = append(found, value.Elem()), inPath[1:]
		case in.Kind() == reflect.String:
			found = append(found, reflect.ValueOf("application/octet-stream"))
		case in.Kind() == reflect.Pointer:
			given := map[string]json.RawMessage{}
			for _, place := range []string{"query", "header"} {
				for name, value := range asked.Parameters[place] {
					given[name] = value
				}
			}
			text, err := json.Marshal(given)
			if err != nil {
				return nil, err
			}
			value := reflect.New(in.Elem())
			if err := decode(text, value.Interface()); err != nil {
				return nil, err
			}
			found = append(found, value)
		default:
			value := reflect.New(in)
			body := asked.Body
			if len(body) == 0 || string(body) == "null" {
				body = []byte("{}")
			}
			if err := decode(body, value.Interface()); err != nil {
				return nil, err
			}
			found = append(found, value.Elem())
		}
	}
	return found, nil
}

// decode refuses what the type has no field for.
func decode(text []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(value)
}

func carryOut(client *filaclient.ClientWithResponses, asked call) (answer, error) {
	name := asked.Operation
	if asked.Raw != nil {
		name += "WithBody"
	}
	of := reflect.ValueOf(client)
	if asked.Stream {
		of = reflect.ValueOf(client.ClientInterface)
	} else {
		name += "WithResponse"
	}
	method := of.MethodByName(name)
	if !method.IsValid() {
		return answer{}, fmt.Errorf("there is no %s", name)
	}
	given, err := arguments(method, asked)
	if err != nil {
		return answer{}, err
	}
	told := method.Call(given)
	if err, failed := told[1].Interface().(error); failed {
		return answer{}, err
	}
	if asked.Stream {
		return firstEvent(told[0].Interface().(*http.Response))
	}
	said := told[0].Elem()
	status := said.FieldByName("HTTPResponse").Interface().(*http.Response).StatusCode
	body := said.FieldByName("Body").Bytes()
	if status != http.StatusOK {
		if said.FieldByName("ApplicationproblemJSONDefault").IsNil() {
			return answer{}, fmt.Errorf("a refusal is no problem: %s", body)
		}
		return answer{Status: status, Problem: body}, nil
	}
	parsed := said.FieldByName("JSON200")
	if parsed.IsNil() {
		return answer{}, fmt.Errorf("%s was not read: %s", name, body)
	}
	// All that was answered has its field in the type.
	return answer{Status: status, Data: json.RawMessage(body)}, decode(body, reflect.New(parsed.Type().Elem()).Interface())
}

// firstEvent reads the data of the first event of a stream, and no more.
func firstEvent(response *http.Response) (answer, error) {
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return answer{}, err
		}
		if data, found := strings.CutPrefix(line, "data:"); found {
			return answer{Status: response.StatusCode, Data: strings.TrimSpace(data)}, nil
		}
	}
}

func run() error {
	withKey := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Args[2])
		return nil
	}
	client, err := filaclient.NewClientWithResponses(os.Args[1], filaclient.WithRequestEditorFn(withKey))
	if err != nil {
		return err
	}
	keyless, err := filaclient.NewClientWithResponses(os.Args[1])
	if err != nil {
		return err
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		var asked call
		if err := json.Unmarshal(line, &asked); err != nil {
			return err
		}
		by := client
		if asked.Keyless {
			by = keyless
		}
		told, err := carryOut(by, asked)
		if err != nil {
			return fmt.Errorf("%s: %w", asked.Operation, err)
		}
		text, err := json.Marshal(told)
		if err != nil {
			return err
		}
		fmt.Println(string(text))
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
