package main

import (
	"context"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

func comesTrue(ctx context.Context, what string, condition func() (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 15*time.Second, true, func(context.Context) (bool, error) { return condition() })
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Informers of this version begin with a streaming list.
func informersFollow(ctx context.Context, all *clients) error {
	maps := all.typed.CoreV1().ConfigMaps(all.ns)
	if _, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: named("before")}, meta.CreateOptions{}); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(all.typed, 0, informers.WithNamespace(all.ns))
	lister := factory.Core().V1().ConfigMaps().Lister()
	removed := make(chan string, 10)
	_, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(object any) { removed <- object.(*core.ConfigMap).Name }})
	if err != nil {
		return err
	}
	custom := dynamicinformer.NewFilteredDynamicSharedInformerFactory(all.dynamic, 0, all.ns, nil)
	boxes := custom.ForResource(sandboxes)
	boxes.Informer()
	factory.Start(ctx.Done())
	custom.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%v never became synced", kind)
		}
	}
	for kind, synced := range custom.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%v never became synced", kind)
		}
	}
	if _, err := lister.ConfigMaps(all.ns).Get("before"); err != nil {
		return err
	}
	if _, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: named("after")}, meta.CreateOptions{}); err != nil {
		return err
	}
	if _, err := all.dynamic.Resource(sandboxes).Namespace(all.ns).Create(ctx, aSandbox("box"), meta.CreateOptions{}); err != nil {
		return err
	}
	if err := comesTrue(ctx, "the new ones", func() (bool, error) {
		found, err := lister.List(labels.SelectorFromSet(labels.Set{"app": "go"}))
		custom, customErr := boxes.Lister().List(labels.Everything())
		return len(found) == 2 && len(custom) == 1, first(err, customErr)
	}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "before", meta.DeleteOptions{}); err != nil {
		return err
	}
	select {
	case name := <-removed:
		return expect(name == "before", "'%s' was removed", name)
	case <-ctx.Done():
		return fmt.Errorf("nobody told of the removal")
	}
}

func oneLeads(ctx context.Context, all *clients) error {
	first, stop := context.WithCancel(ctx)
	defer stop()
	led := make(chan string, 2)
	campaign := func(ctx context.Context, who string) {
		lock := &resourcelock.LeaseLock{LeaseMeta: meta.ObjectMeta{Name: "lock", Namespace: all.ns}, Client: all.typed.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: who}}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 300 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { led <- who }, OnStoppedLeading: func() {}}})
	}
	go campaign(first, "a")
	if who := <-led; who != "a" {
		return fmt.Errorf("'%s' leads", who)
	}
	go campaign(ctx, "b")
	select {
	case who := <-led:
		return fmt.Errorf("'%s' leads too", who)
	case <-time.After(time.Second):
	}
	stop()
	select {
	case <-led:
	case <-ctx.Done():
		return fmt.Errorf("nobody took over")
	}
	lease, err := all.typed.CoordinationV1().Leases(all.ns).Get(ctx, "lock", meta.GetOptions{})
	if err != nil {
		return err
	}
	return expect(*lease.Spec.HolderIdentity == "b" && *lease.Spec.LeaseTransitions >= 1, "the lease is %v", lease.Spec)
}

// Both recorders: of core/v1, which counts by patches, and of events.k8s.io.
func eventsAreRecorded(ctx context.Context, all *clients) error {
	pod, err := all.typed.CoreV1().Pods(all.ns).Create(ctx, aPod("web"), meta.CreateOptions{})
	if err != nil {
		return err
	}
	old := record.NewBroadcaster()
	old.StartRecordingToSink(&coreclient.EventSinkImpl{Interface: all.typed.CoreV1().Events(all.ns)})
	recorder := old.NewRecorder(scheme.Scheme, core.EventSource{Component: "old"})
	for range 3 {
		recorder.Event(pod, core.EventTypeNormal, "Old", "again")
	}
	if err := comesTrue(ctx, "three of one", func() (bool, error) {
		found, err := all.typed.CoreV1().Events(all.ns).List(ctx, meta.ListOptions{FieldSelector: "involvedObject.name=web,reason=Old"})
		return err == nil && len(found.Items) == 1 && found.Items[0].Count == 3, err
	}); err != nil {
		return err
	}
	sink := events.NewBroadcaster(&events.EventSinkImpl{Interface: all.typed.EventsV1()})
	sink.StartRecordingToSink(ctx.Done())
	newer := sink.NewRecorder(scheme.Scheme, "new")
	for range 2 {
		newer.Eventf(pod, nil, core.EventTypeWarning, "New", "Doing", "note %d", 1)
	}
	return comesTrue(ctx, "the new event", func() (bool, error) {
		found, err := all.typed.EventsV1().Events(all.ns).List(ctx, meta.ListOptions{FieldSelector: "reason=New"})
		return err == nil && len(found.Items) == 1 && found.Items[0].ReportingController == "new", err
	})
}
