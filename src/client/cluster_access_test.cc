#include "client/cluster_access.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "client/testing_internal.h"

namespace hearth::client {
namespace {

constexpr char kCluster[] = R"(
apiVersion: v1
kind: Config
current-context: home
clusters:
- name: here
  cluster: {server: "https://10.0.0.1:6443/base/", certificate-authority: pki/ca.crt}
contexts:
- name: home
  context: {cluster: here, user: jane, namespace: work}
- name: bare
  context: {cluster: here}
- name: lost
  context: {cluster: nowhere, user: jane}
)";

// A kubeconfig whose only user is this.
ClusterAccess with_user(const std::string& user) {
  const TestFolder folder;
  return load_kubeconfig({folder.write("c", kCluster),
                          folder.write("u", "users:\n- name: jane\n  user: " + user + "\n")});
}

ClusterAccess with_cluster(const std::string& cluster) {
  const TestFolder folder;
  return load_kubeconfig(
      {folder.write("c", "current-context: x\nclusters:\n- name: x\n  cluster: " + cluster +
                             "\ncontexts:\n- name: x\n  context: {cluster: x}\n")});
}

std::string refusal(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(Kubeconfig, SaysWhereAndWho) {
  const TestFolder folder;
  const std::string file = folder.write(
      "config", std::string(kCluster) + "users:\n- name: jane\n  user: {token: secret}\n");

  const ClusterAccess access = load_kubeconfig({file});

  EXPECT_EQ(access.server, "https://10.0.0.1:6443/base/");
  EXPECT_EQ(access.ca.file, folder.path("pki/ca.crt"));
  EXPECT_EQ(access.token, "secret");
  EXPECT_EQ(access.ns, "work");
  EXPECT_FALSE(access.is_insecure);
}

TEST(Kubeconfig, AnotherContextMayBeChosen) {
  const TestFolder folder;
  const std::string file = folder.write("config", kCluster);

  const ClusterAccess access = load_kubeconfig({file}, "bare");

  EXPECT_EQ(access.ns, "default");
  EXPECT_EQ(access.token, "");
  EXPECT_NE(refusal([&] { load_kubeconfig({file}, "other"); }).find("'other'"), std::string::npos);
  EXPECT_NE(refusal([&] { load_kubeconfig({file}, "lost"); }).find("'nowhere'"), std::string::npos);
  EXPECT_NE(refusal([&] { load_kubeconfig({file}); }).find("'jane'"), std::string::npos);
}

TEST(Kubeconfig, TheFirstFileThatSaysSomethingWins) {
  const TestFolder folder;
  const std::string second = R"(
current-context: bare
clusters:
- name: here
  cluster: {server: "https://elsewhere"}
users:
- name: jane
  user: {tokenFile: tokens/jane}
)";
  std::filesystem::create_directory(folder.path("sub"));

  const ClusterAccess access =
      load_kubeconfig({folder.path("missing"), folder.write("first", kCluster),
                       folder.write("sub/second", second)});

  EXPECT_EQ(access.server, "https://10.0.0.1:6443/base/");
  EXPECT_EQ(access.ns, "work");
  // From the folder of the file that says it.
  EXPECT_EQ(access.token_file, folder.path("sub/tokens/jane"));
}

TEST(Kubeconfig, ThereMustBeOne) {
  const TestFolder folder;
  EXPECT_THROW(load_kubeconfig({}), Error);
  EXPECT_THROW(load_kubeconfig({folder.path("missing")}), Error);
  EXPECT_THROW(load_kubeconfig({folder.write("empty", "")}), Error);
  EXPECT_THROW(load_kubeconfig({folder.write("list", "- a\n")}), Error);
  EXPECT_THROW(load_kubeconfig({folder.write("broken", "a: [")}), Error);
  EXPECT_THROW(load_kubeconfig(std::vector<std::string>(100, folder.path("missing"))), Error);
}

TEST(Kubeconfig, KnowsCertificatesInBothForms) {
  const ClusterAccess files = with_user("{client-certificate: /a.crt, client-key: /a.key}");
  EXPECT_EQ(files.certificate.file, "/a.crt");
  EXPECT_EQ(files.key.file, "/a.key");
  const ClusterAccess data = with_user(
      "{client-certificate: /a.crt, client-certificate-data: YWJj, client-key-data: ZGVm}");
  EXPECT_EQ(data.certificate.text, "abc");
  EXPECT_EQ(data.certificate.file, "");
  EXPECT_EQ(data.key.text, "def");
  EXPECT_THROW(with_user("{client-certificate: /a.crt}"), Error);
  EXPECT_THROW(with_user("{client-certificate-data: '!', client-key: /k}"), Error);
}

TEST(Kubeconfig, KnowsPasswordsAndImpersonation) {
  const ClusterAccess access =
      with_user("{username: u, password: p, as: other, as-uid: '7', as-groups: [a, b]}");
  EXPECT_EQ(access.username, "u");
  EXPECT_EQ(access.password, "p");
  EXPECT_EQ(access.as, "other");
  EXPECT_EQ(access.as_uid, "7");
  EXPECT_EQ(access.as_groups, (std::vector<std::string>{"a", "b"}));
}

TEST(Kubeconfig, RefusesWhatItWouldGetWrong) {
  EXPECT_NE(refusal([] { with_user("{auth-provider: {name: oidc}}"); }).find("auth-provider"),
            std::string::npos);
  EXPECT_NE(refusal([] { with_user("{as: a, as-user-extra: {b: [c]}}"); }).find("as-user-extra"),
            std::string::npos);
  EXPECT_NE(refusal([] {
              with_cluster("{server: 'https://a', proxy-url: 'http://p'}");
            }).find("proxy-url"),
            std::string::npos);
  EXPECT_THROW(with_cluster("{server: 'https://a', certificate-authority: /ca, "
                            "insecure-skip-tls-verify: true}"),
               Error);
  EXPECT_THROW(with_cluster("{}"), Error);
  EXPECT_THROW(with_cluster("{server: 'ftp://a'}"), Error);
  EXPECT_THROW(with_user("{token: [a]}"), Error);
}

TEST(Kubeconfig, ASecretIsNotQuoted) {
  const std::string said = refusal([] { with_user("{token: {deep: hunter2}}"); });
  EXPECT_EQ(said.find("hunter2"), std::string::npos) << said;
  EXPECT_EQ(refusal([] { with_cluster("{server: 'https://u:hunter2@host'}"); }).find("hunter2"),
            std::string::npos);
}

TEST(Kubeconfig, TlsMayBeToldOtherwise) {
  EXPECT_TRUE(with_cluster("{server: 'https://a', insecure-skip-tls-verify: true}").is_insecure);
  EXPECT_EQ(with_cluster("{server: 'https://a', tls-server-name: b}").tls_server_name, "b");
}

TEST(Kubeconfig, KnowsPlugins) {
  const TestFolder folder;
  const std::string text = R"(
current-context: x
contexts: [{name: x, context: {cluster: c, user: u}}]
clusters:
- name: c
  cluster:
    server: https://a
    extensions:
    - {name: client.authentication.k8s.io/exec, extension: {audience: me}}
users:
- name: u
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: [get, token]
      env: [{name: A, value: b}]
      provideClusterInfo: true
      interactiveMode: IfAvailable
      installHint: ask Jane
)";

  const ClusterAccess access = load_kubeconfig({folder.write("config", text)});

  ASSERT_TRUE(access.exec);
  EXPECT_EQ(access.exec->command,
            (std::vector<std::string>{folder.path("bin/login"), "get", "token"}));
  EXPECT_EQ(access.exec->environment, std::vector<std::string>{"A=b"});
  EXPECT_EQ(access.exec->install_hint, "ask Jane");
  EXPECT_EQ(model::text_at(access.exec->cluster_config, {"audience"}), "me");
}

TEST(Kubeconfig, RefusesPluginsThatCannotWork) {
  constexpr char kV1[] = "client.authentication.k8s.io/v1";
  EXPECT_THROW(with_user("{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: a}}"),
               Error);
  EXPECT_THROW(with_user(fmt::format("{{exec: {{apiVersion: {}}}}}", kV1)), Error);
  EXPECT_THROW(with_user(fmt::format(
                   "{{exec: {{apiVersion: {}, command: a, interactiveMode: Always}}}}", kV1)),
               Error);
  EXPECT_EQ(
      with_user(fmt::format("{{exec: {{apiVersion: {}, command: a}}}}", kV1)).exec->command.front(),
      "a");
}

TEST(KubeconfigFiles, AreThoseOfTheEnvironment) {
  const TestVariable home("HOME", "/home/jane");
  {
    const TestVariable several("KUBECONFIG", "/a::/b:");
    EXPECT_EQ(kubeconfig_files(), (std::vector<std::string>{"/a", "/b"}));
  }
  const TestVariable none("KUBECONFIG", "");
  EXPECT_EQ(kubeconfig_files(), std::vector<std::string>{"/home/jane/.kube/config"});
}

TEST(InClusterAccess, IsThatOfThePod) {
  const TestFolder folder;
  folder.write("namespace", "mine\n");
  const std::string path = folder.path("");
  {
    const TestVariable host("KUBERNETES_SERVICE_HOST", "fd00::1");
    const TestVariable port("KUBERNETES_SERVICE_PORT", "443");

    const auto access = find_in_cluster_access(path);

    ASSERT_TRUE(access);
    EXPECT_EQ(access->server, "https://[fd00::1]:443");
    EXPECT_EQ(access->ns, "mine");
    EXPECT_EQ(access->token_file, path + "/token");
    EXPECT_EQ(access->ca.file, path + "/ca.crt");
    EXPECT_THROW(find_in_cluster_access(folder.path("missing")), Error);
  }
  const TestVariable host("KUBERNETES_SERVICE_HOST", "");
  EXPECT_FALSE(find_in_cluster_access(path));
}

TEST(ServerUrl, ComesInParts) {
  const ServerUrl plain = parse_server_url("http://localhost");
  EXPECT_FALSE(plain.is_tls);
  EXPECT_EQ(plain.port, 80);
  const ServerUrl url = parse_server_url("https://[::1]:6443/k8s/clusters/c-1//");
  EXPECT_TRUE(url.is_tls);
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.port, 6443);
  EXPECT_EQ(url.base, "/k8s/clusters/c-1");
  EXPECT_EQ(parse_server_url("https://a/").base, "");
}

TEST(ServerUrl, RefusesWhatIsNone) {
  for (const char* text :
       {"", "host:6443", "https://", "https://:1", "https://a:", "https://a:x", "https://a:0",
        "https://a:70000", "https://[::1", "https://[::1]6443", "https://u@a", "https://a?b",
        "https://a/b#c", "https://a b", "https://a\r\nX: y"}) {
    EXPECT_THROW(parse_server_url(text), Error) << text;
  }
}

}  // namespace
}  // namespace hearth::client
