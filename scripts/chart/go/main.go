// Reads manifests of kinds that Kubernetes itself does not have, strictly, with the types of their projects. Prints one
// line for each, and ends with 1 if a member is unknown or of another type.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	failed := false
	for _, document := range strings.Split(string(text), "\n---\n") {
		var head struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			panic(err)
		}
		var object any
		switch head.Kind {
		case "ServiceMonitor":
			object = &monitoring.ServiceMonitor{}
		case "HTTPRoute":
			object = &gateway.HTTPRoute{}
		default:
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			fmt.Printf("%s: %v\n", head.Kind, err)
			failed = true
			continue
		}
		fmt.Printf("%s: valid\n", head.Kind)
	}
	if failed {
		os.Exit(1)
	}
}
