#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/command_line.h"

namespace hearth::cli {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

ControllerOptions parse(Words words) {
  words.insert(words.begin(), "controller");
  return std::get<ControllerOptions>(parse_order(split_command_line(words)));
}

std::string complaint(const Words& words) {
  try {
    parse(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    return error.what();
  }
  return {};
}

TEST(ControllerCommandLine, SaysNothingAndGetsWhatPeopleKnow) {
  const ControllerOptions options = parse({});
  EXPECT_FALSE(options.extensions.has_value());
  EXPECT_TRUE(options.leader_elect);
  EXPECT_EQ(options.lease_namespace, "");
  EXPECT_EQ(options.metrics_address, ":8080");
  EXPECT_EQ(options.health_address, ":8081");
  EXPECT_EQ(options.e2b_address, "0");
  EXPECT_EQ(options.api_qps, -1);
  EXPECT_EQ(options.api_burst, 10U);
  const controllers::Options& of = options.controllers;
  EXPECT_EQ(of.cluster_domain, "cluster.local");
  EXPECT_EQ(of.sandbox_workers, 100U);
  EXPECT_EQ(of.claim_workers, 50U);
  EXPECT_EQ(of.pool_workers, 1U);
  EXPECT_EQ(of.template_workers, 1U);
  EXPECT_EQ(of.most_batch, 300U);
  EXPECT_EQ(of.replenish_delay, 0s);
  EXPECT_EQ(of.most_refill_rate, 0);
  EXPECT_EQ(of.readiness_grace, 5min);
  EXPECT_EQ(of.unschedulable_recheck, 1min);
  EXPECT_TRUE(of.warm_pool_eviction);
  EXPECT_EQ(of.write_behind, 0s);
  EXPECT_TRUE(of.claim_events);
  EXPECT_TRUE(of.claim_observability_annotations);
  EXPECT_FALSE(of.caches_by_label);
  EXPECT_EQ(of.guest_image, "");
  EXPECT_TRUE(options.without_effect.empty());
}

TEST(ControllerCommandLine, EveryFlagArrives) {
  const ControllerOptions options = parse({"--extensions",
                                           "--leader-elect=false",
                                           "--leader-election-namespace",
                                           "system",
                                           "--cluster-domain=example.test",
                                           "--metrics-bind-address",
                                           "0",
                                           "--health-probe-bind-address=127.0.0.1:9",
                                           "--kube-api-qps",
                                           "-1",
                                           "--kube-api-burst=7",
                                           "--sandbox-concurrent-workers=1",
                                           "--sandbox-claim-concurrent-workers=2",
                                           "--sandbox-warm-pool-concurrent-workers=3",
                                           "--sandbox-template-concurrent-workers=4",
                                           "--sandbox-warm-pool-max-batch-size=5",
                                           "--sandbox-warm-pool-replenish-delay=6s",
                                           "--sandbox-warm-pool-max-refill-rate=0.5",
                                           "--sandbox-warm-pool-readiness-grace-period=7m",
                                           "--sandbox-warm-pool-unschedulable-recheck-interval=8s",
                                           "--enable-warm-pool-eviction=false",
                                           "--cache-label-selectors",
                                           "--guest-image=example.test/guest:1",
                                           "--sandbox-write-behind-window=9ms",
                                           "--sandbox-transitional-status-window=10ms",
                                           "--disable-sandbox-events",
                                           "--enable-tracing",
                                           "--disable-claim-events",
                                           "--disable-claim-observability-annotations=true",
                                           "--zap-log-level=debug",
                                           "--zap-encoder=console",
                                           "--kubeconfig=f",
                                           "--context=c"});
  EXPECT_EQ(options.extensions, true);
  EXPECT_FALSE(options.leader_elect);
  EXPECT_EQ(options.lease_namespace, "system");
  EXPECT_EQ(options.metrics_address, "0");
  EXPECT_EQ(options.health_address, "127.0.0.1:9");
  EXPECT_EQ(options.api_burst, 7U);
  EXPECT_EQ(options.log_level, log::Level::debug);
  EXPECT_EQ(options.log_format, log::Format::text);
  EXPECT_EQ(options.kubeconfig, "f");
  EXPECT_EQ(options.context, "c");
  const controllers::Options& of = options.controllers;
  EXPECT_EQ(of.cluster_domain, "example.test");
  EXPECT_EQ(of.sandbox_workers, 1U);
  EXPECT_EQ(of.claim_workers, 2U);
  EXPECT_EQ(of.pool_workers, 3U);
  EXPECT_EQ(of.template_workers, 4U);
  EXPECT_EQ(of.most_batch, 5U);
  EXPECT_EQ(of.replenish_delay, 6s);
  EXPECT_EQ(of.most_refill_rate, 0.5);
  EXPECT_EQ(of.readiness_grace, 7min);
  EXPECT_EQ(of.unschedulable_recheck, 8s);
  EXPECT_FALSE(of.warm_pool_eviction);
  EXPECT_TRUE(of.caches_by_label);
  EXPECT_EQ(of.guest_image, "example.test/guest:1");
  EXPECT_EQ(of.write_behind, 9ms);
  EXPECT_EQ(of.transitional_status_window, 10ms);
  EXPECT_FALSE(of.sandbox_events);
  EXPECT_FALSE(of.claim_events);
  EXPECT_FALSE(of.claim_observability_annotations);
  EXPECT_TRUE(options.tracing);
  EXPECT_FALSE(parse({"--enable-tracing=false"}).tracing);
}

TEST(ControllerCommandLine, FlagsAreSpelledAsGoSpellsThem) {
  EXPECT_EQ(parse({"-extensions=F"}).extensions, false);
  EXPECT_EQ(parse({"-cluster-domain", "a.b"}).controllers.cluster_domain, "a.b");
  EXPECT_TRUE(parse({"--leader-elect"}).leader_elect);
  EXPECT_EQ(parse({"--sandbox-warm-pool-replenish-delay=0"}).controllers.replenish_delay, 0s);
}

TEST(ControllerCommandLine, WhatWeDoNotHaveIsTakenAndTold) {
  const ControllerOptions options =
      parse({"--enable-pprof=false", "--enable-pprof-debug", "--zap-time-encoding=iso8601",
             "--api-connections", "4", "--zap-devel"});
  EXPECT_EQ(options.without_effect, (Words{"--enable-pprof-debug", "--zap-devel",
                                           "--api-connections", "--zap-time-encoding"}));
}

TEST(ControllerCommandLine, TheWebhookIsTheirs) {
  const WebhookFlags unsaid = parse({}).webhook;
  EXPECT_FALSE(unsaid.is_enabled.has_value());
  EXPECT_EQ(unsaid.port, 9443U);
  EXPECT_EQ(unsaid.service, "agent-sandbox-webhook-service");
  EXPECT_EQ(unsaid.ns, "");
  EXPECT_TRUE(unsaid.manages_certificates);
  EXPECT_EQ(unsaid.folder, "/tmp/k8s-webhook-server/serving-certs");
  EXPECT_EQ(unsaid.certificate, "tls.crt");
  EXPECT_EQ(unsaid.key, "tls.key");

  const ControllerOptions options =
      parse({"--enable-webhook", "--webhook-port=1", "--webhook-service-name=s",
             "--webhook-namespace=n", "--manage-webhook-certs=false", "--webhook-cert-dir=/d",
             "--webhook-cert-name=c", "--webhook-key-name=k"});
  EXPECT_EQ(options.webhook.is_enabled, true);
  EXPECT_EQ(options.webhook.port, 1U);
  EXPECT_EQ(options.webhook.service, "s");
  EXPECT_EQ(options.webhook.ns, "n");
  EXPECT_FALSE(options.webhook.manages_certificates);
  EXPECT_EQ(options.webhook.folder, "/d");
  EXPECT_EQ(options.webhook.certificate, "c");
  EXPECT_EQ(options.webhook.key, "k");
  EXPECT_TRUE(options.without_effect.empty());
  EXPECT_EQ(parse({"--enable-webhook=false"}).webhook.is_enabled, false);
}

CrdsOptions parse_crds(Words words) {
  words.insert(words.begin(), "crds");
  return std::get<CrdsOptions>(parse_order(split_command_line(words)));
}

TEST(CrdsCommandLine, NamesTheServiceThatConverts) {
  EXPECT_EQ(parse_crds({}).conversion_service, model::Key());
  EXPECT_EQ(parse_crds({"--conversion-service", "system/hook"}).conversion_service,
            (model::Key{"system", "hook"}));
  for (const std::string text :
       {"", "/", "hook", "system/", "/hook", "a/b/c", "system/9hook", "A/b"})
    EXPECT_THROW(parse_crds({"--conversion-service=" + text}), Error) << text;
}

TEST(ControllerCommandLine, ValuesThatMakeNoSenseAreNamed) {
  for (const std::string flag : {"--sandbox-concurrent-workers=0",
                                 "--sandbox-claim-concurrent-workers=-1",
                                 "--sandbox-warm-pool-concurrent-workers=x",
                                 "--sandbox-template-concurrent-workers=0",
                                 "--sandbox-warm-pool-max-batch-size=0",
                                 "--sandbox-warm-pool-max-refill-rate=-1",
                                 "--sandbox-warm-pool-max-refill-rate=inf",
                                 "--sandbox-warm-pool-max-refill-rate=nan",
                                 "--sandbox-warm-pool-readiness-grace-period=0",
                                 "--sandbox-warm-pool-unschedulable-recheck-interval=0s",
                                 "--sandbox-warm-pool-replenish-delay=-1s",
                                 "--sandbox-write-behind-window=soon",
                                 "--kube-api-burst=0",
                                 "--kube-api-qps=many",
                                 "--leader-elect=perhaps",
                                 "--extensions=2",
                                 "--cluster-domain=",
                                 "--metrics-bind-address=",
                                 "--zap-encoder=xml",
                                 "--zap-log-level=loud",
                                 "--enable-webhook=2",
                                 "--manage-webhook-certs=x",
                                 "--webhook-port=0",
                                 "--webhook-port=65536",
                                 "--webhook-service-name=",
                                 "--webhook-key-name=",
                                 "--enable-pprof=2"}) {
    const std::string name = flag.substr(0, flag.find('='));
    EXPECT_NE(complaint({flag}).find(name), std::string::npos) << flag << ": " << complaint({flag});
  }
  EXPECT_NE(complaint({"--frob"}).find("--frob"), std::string::npos);
  EXPECT_NE(complaint({"word"}).find("word"), std::string::npos);
}

}  // namespace
}  // namespace hearth::cli
