// What programs written with client-go do, against the server that KUBECONFIG names. One word: the case.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

type clients struct {
	config  *rest.Config
	typed   *kubernetes.Clientset
	dynamic *dynamic.DynamicClient
	ns      string
}

var cases = map[string]func(context.Context, *clients) error{
	"typed":     typedObjects,
	"dynamic":   dynamicObjects,
	"informers": informersFollow,
	"election":  oneLeads,
	"events":    eventsAreRecorded,
	"apply":     appliesWithOwners,
}

func connect(ns string) (*clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, err
	}
	config.UserAgent = "hearth-compat/1"
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dynamic, err := dynamic.NewForConfig(config)
	return &clients{config, typed, dynamic, ns}, err
}

func run(name string) error {
	test, known := cases[name]
	if !known {
		return fmt.Errorf("there is no case '%s'", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	all, err := connect("go-" + name)
	if err != nil {
		return err
	}
	if err := makeNamespace(ctx, all); err != nil {
		return err
	}
	return test(ctx, all)
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
