#include "pki/authority.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <openssl/x509v3.h>

#include "base/error.h"
#include "base/id.h"
#include "pki/certificate_internal.h"
#include "pki/crypto_internal.h"

namespace hearth::pki {
namespace {

using namespace std::chrono_literals;

class AuthorityTest : public testing::Test {
 protected:
  AuthorityTest()
      : folder_(std::filesystem::temp_directory_path() / ("hearth-pki-" + random_hex(8)) / "pki") {}
  ~AuthorityTest() override { std::filesystem::remove_all(folder_.parent_path()); }
  AuthorityTest(const AuthorityTest&) = delete;
  AuthorityTest& operator=(const AuthorityTest&) = delete;

  std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  unsigned mode(const std::filesystem::path& path) const {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 0777;
  }

  const std::filesystem::path folder_;
  const Time now_ = Time(1'800'000'000s);
};

Code code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return Code::internal;
}

bool is_signed_by(const Identity& identity, const std::string& authority) {
  const Certificate certificate = parse_certificate(identity.certificate, "it");
  const Certificate issuer = parse_certificate(authority, "ca");
  return X509_verify(certificate.get(), X509_get0_pubkey(issuer.get())) == 1 &&
         X509_check_issued(issuer.get(), certificate.get()) == X509_V_OK;
}

std::vector<std::string> subject_of(const std::string& pem, int kind) {
  const Certificate certificate = parse_certificate(pem, "it");
  const X509_NAME* subject = X509_get_subject_name(certificate.get());
  std::vector<std::string> names;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, kind, at)) >= 0;) {
    const ASN1_STRING* value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                       static_cast<std::size_t>(ASN1_STRING_length(value)));
  }
  return names;
}

TEST_F(AuthorityTest, IsMadeOnceAndKeptPrivately) {
  const Authority first(folder_, now_);
  const Authority second(folder_, now_ + 24h);

  EXPECT_EQ(first.certificate(), second.certificate());
  EXPECT_EQ(read("ca.crt"), first.certificate());
  EXPECT_EQ(mode(folder_ / "ca.key"), 0600U);
  EXPECT_EQ(mode(folder_), 0700U);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ca.key.new"));
}

TEST_F(AuthorityTest, TheServersCertificateHasTheUsualNamesAndThoseAskedFor) {
  const Authority authority(folder_, now_);

  const Identity server =
      authority.server({"10.0.0.7", "0.0.0.0", "::", "", "node.example", "localhost"}, now_);

  EXPECT_TRUE(is_signed_by(server, authority.certificate()));
  const Certificate certificate = parse_certificate(server.certificate, "server");
  const std::vector<std::string> names = alternative_names(certificate.get());
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "DNS:kubernetes", "DNS:kubernetes.default", "DNS:kubernetes.default.svc",
                "DNS:localhost", "DNS:node.example", "IP:10.0.0.7", "IP:127.0.0.1", "IP:::1"}));
  EXPECT_EQ(X509_check_purpose(certificate.get(), X509_PURPOSE_SSL_SERVER, 0), 1);
  EXPECT_EQ(X509_check_purpose(certificate.get(), X509_PURPOSE_SSL_CLIENT, 0), 0);
  EXPECT_EQ(mode(folder_ / "server.key"), 0600U);
}

TEST_F(AuthorityTest, TheServersCertificateIsKeptUntilItNoLongerFits) {
  const Authority authority(folder_, now_);
  const Identity first = authority.server({"a.example"}, now_);

  EXPECT_EQ(authority.server({"a.example"}, now_ + 24h).certificate, first.certificate);
  EXPECT_EQ(authority.server({"a.example"}, now_ + 24h).key, first.key);
  EXPECT_NE(authority.server({"b.example"}, now_).certificate, first.certificate);
  const Identity latest = authority.server({"a.example"}, now_);
  EXPECT_NE(authority.server({"a.example"}, now_ + 366 * 24h).certificate, latest.certificate);
}

TEST_F(AuthorityTest, IssuesForOtherServersAndAllBelowThem) {
  const Authority authority(folder_, now_);
  const Identity made = authority.issue_server("gateway", {"sbx.test", "*.sbx.test"}, now_);
  EXPECT_TRUE(is_signed_by(made, authority.certificate()));
  const Certificate certificate = parse_certificate(made.certificate, "it");
  EXPECT_EQ(X509_check_host(certificate.get(), "49983-i1.sbx.test", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(certificate.get(), "sbx.test", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(certificate.get(), "a.b.sbx.test", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_host(certificate.get(), "localhost", 0, 0, nullptr), 0);
  for (const char* name : {"*", "*.", "a.*.test", "**.test", "*.a,DNS:b"})
    EXPECT_EQ(code_of([&] { authority.issue_server("x", {name}, now_); }), Code::invalid) << name;
}

TEST_F(AuthorityTest, ATornServerPairIsMadeAgain) {
  const Authority authority(folder_, now_);
  const Identity first = authority.server({}, now_);

  write("server.key", authority.issue_client("x", {}, 1h, now_).key);
  const Identity second = authority.server({}, now_);
  EXPECT_NE(second.certificate, first.certificate);
  write("server.crt", "nonsense");
  EXPECT_NE(authority.server({}, now_).certificate, second.certificate);
  std::filesystem::remove(folder_ / "server.key");
  EXPECT_TRUE(is_signed_by(authority.server({}, now_), authority.certificate()));
}

TEST_F(AuthorityTest, AServerCertificateOfAnotherAuthorityIsMadeAgain) {
  const Identity foreign = Authority(folder_, now_).server({}, now_);
  std::filesystem::remove(folder_ / "ca.key");
  std::filesystem::remove(folder_ / "ca.crt");

  const Authority authority(folder_, now_);

  EXPECT_FALSE(is_signed_by(foreign, authority.certificate()));
  EXPECT_TRUE(is_signed_by(authority.server({}, now_), authority.certificate()));
}

TEST_F(AuthorityTest, ALostCertificateIsMadeAgainForTheSameKey) {
  const Identity client = Authority(folder_, now_).issue_client("alice", {}, 24h, now_);
  std::filesystem::remove(folder_ / "ca.crt");

  const Authority again(folder_, now_);
  EXPECT_TRUE(is_signed_by(client, again.certificate()));
  write("ca.crt", "");
  const Authority after_power_cut(folder_, now_);
  EXPECT_TRUE(is_signed_by(client, after_power_cut.certificate()));
}

TEST_F(AuthorityTest, NearItsEndItIsRenewedWithTheSameKey) {
  const Authority young(folder_, now_);
  const Identity client = young.issue_client("alice", {}, 24h, now_);

  const Authority old(folder_, now_ + 8 * 365 * 24h);

  EXPECT_NE(old.certificate(), young.certificate());
  EXPECT_TRUE(is_signed_by(client, old.certificate()));
}

TEST_F(AuthorityTest, WhatDoesNotBelongTogetherIsRefused) {
  const Identity client = Authority(folder_, now_).issue_client("alice", {}, 24h, now_);
  const std::string key = read("ca.key");

  write("ca.key", client.key);
  EXPECT_EQ(code_of([&] { Authority(folder_, now_); }), Code::invalid);
  write("ca.key", "");
  EXPECT_EQ(code_of([&] { Authority(folder_, now_); }), Code::invalid);
  std::filesystem::remove(folder_ / "ca.key");
  EXPECT_EQ(code_of([&] { Authority(folder_, now_); }), Code::invalid);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ca.key")) << "nothing is replaced silently";
  write("ca.key", key);
  write("ca.crt", "nonsense");
  EXPECT_EQ(code_of([&] { Authority(folder_, now_); }), Code::invalid);
}

TEST_F(AuthorityTest, ErrorsNeverShowAKey) {
  {
    const Authority made(folder_, now_);
  }
  write("ca.crt", "nonsense");
  try {
    const Authority broken(folder_, now_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("PRIVATE"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("ca.crt"), std::string::npos);
  }
}

TEST_F(AuthorityTest, ClientsHaveAUserAndGroups) {
  const Authority authority(folder_, now_);
  const std::string user = "system:serviceaccount:default:" + std::string(63, 'a');

  const Identity client = authority.issue_client(user, {"system:masters", "devs"}, 1h, now_);

  EXPECT_TRUE(is_signed_by(client, authority.certificate()));
  EXPECT_EQ(subject_of(client.certificate, NID_commonName), std::vector<std::string>{user});
  EXPECT_EQ(subject_of(client.certificate, NID_organizationName),
            (std::vector<std::string>{"system:masters", "devs"}));
  const Certificate certificate = parse_certificate(client.certificate, "client");
  EXPECT_EQ(expiry(certificate.get()), now_ + 1h);
  EXPECT_EQ(X509_check_purpose(certificate.get(), X509_PURPOSE_SSL_CLIENT, 0), 1);
  EXPECT_EQ(X509_check_purpose(certificate.get(), X509_PURPOSE_SSL_SERVER, 0), 0);
}

TEST_F(AuthorityTest, NamesThatAreNoneAreRefused) {
  const Authority authority(folder_, now_);

  for (const std::string& name :
       {std::string(), std::string(257, 'a'), std::string("a\nb"), std::string("a\0b", 3)}) {
    EXPECT_EQ(code_of([&] { authority.issue_client(name, {}, 1h, now_); }), Code::invalid);
    EXPECT_EQ(code_of([&] { authority.issue_client("a", {name}, 1h, now_); }), Code::invalid);
  }
  EXPECT_EQ(code_of([&] { authority.issue_client("a", {}, 0h, now_); }), Code::invalid);
  for (const std::string name : {"a,DNS:evil.example", "a b", "-a", "a\n", "a/b", "10.0.0.7/8"})
    EXPECT_EQ(code_of([&] { authority.server({name}, now_); }), Code::invalid) << name;
}

}  // namespace
}  // namespace hearth::pki
