#include "pki/serving.h"

#include <gtest/gtest.h>
#include <openssl/x509v3.h>

#include "base/error.h"
#include "pki/certificate_internal.h"

namespace hearth::pki {
namespace {

using namespace std::chrono_literals;

constexpr Duration kYear = 365 * 24h;
const Time kNow = Time(1'800'000'000s);
const std::vector<std::string> kNames = {"hook.system.svc", "hook.system", "hook"};

bool is_trusted(const Identity& server, const std::string& authority) {
  const Certificate certificate = parse_certificate(server.certificate, "it");
  const Certificate issuer = parse_certificate(authority, "ca");
  return X509_verify(certificate.get(), X509_get0_pubkey(issuer.get())) == 1 &&
         X509_check_issued(issuer.get(), certificate.get()) == X509_V_OK;
}

bool is_same(const Serving& left, const Serving& right) {
  return left.authority == right.authority && left.authority_key == right.authority_key &&
         left.server.certificate == right.server.certificate && left.server.key == right.server.key;
}

std::size_t certificates_in(const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find("BEGIN CERT", at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(Serving, IsMadeForItsNamesAndKept) {
  const Serving made = renew_serving({}, kNames, kNow);

  EXPECT_TRUE(is_trusted(made.server, made.authority));
  const Certificate certificate = parse_certificate(made.server.certificate, "it");
  EXPECT_EQ(X509_check_host(certificate.get(), "hook.system.svc", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(certificate.get(), "other.system.svc", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_purpose(certificate.get(), X509_PURPOSE_SSL_SERVER, 0), 1);
  EXPECT_TRUE(is_same(renew_serving(made, kNames, kNow + 24h), made));
  EXPECT_TRUE(is_same(renew_serving(made, {"hook", "hook.system", "hook.system.svc"}, kNow), made));
}

TEST(Serving, ItsAuthorityStaysWhenTheServerIsRenewed) {
  const Serving made = renew_serving({}, kNames, kNow);

  const Serving later = renew_serving(made, kNames, kNow + kYear + 24h);
  EXPECT_NE(later.server.certificate, made.server.certificate);
  EXPECT_EQ(later.authority, made.authority);
  EXPECT_TRUE(is_trusted(later.server, made.authority));
  const Serving renamed = renew_serving(made, {"another.system.svc"}, kNow);
  EXPECT_NE(renamed.server.certificate, made.server.certificate);
  EXPECT_EQ(renamed.authority, made.authority);
}

TEST(Serving, NearItsEndTheAuthorityIsRenewedWithTheSameKey) {
  const Serving made = renew_serving({}, kNames, kNow);
  const Serving old = renew_serving(made, kNames, kNow + 8 * kYear);

  EXPECT_NE(old.authority, made.authority);
  EXPECT_EQ(old.authority_key, made.authority_key);
  EXPECT_EQ(certificates_in(old.authority), 1U);
  EXPECT_TRUE(is_trusted(made.server, old.authority));
}

TEST(Serving, AnAuthorityWithoutItsKeyIsReplacedAndStillTrusted) {
  const Serving made = renew_serving({}, kNames, kNow);
  Serving foreign = made;
  foreign.authority_key.clear();

  const Serving next = renew_serving(foreign, kNames, kNow);

  EXPECT_TRUE(is_trusted(next.server, next.authority));
  EXPECT_FALSE(is_trusted(made.server, next.authority)) << "the newest is the first";
  EXPECT_EQ(certificates_in(next.authority), 2U);
  EXPECT_TRUE(next.authority.ends_with(made.authority));
  EXPECT_TRUE(is_same(renew_serving(next, kNames, kNow), next));
}

TEST(Serving, WhatCannotBeReadOrDoesNotFitIsMadeAgain) {
  const Serving made = renew_serving({}, kNames, kNow);
  const Serving other = renew_serving({}, kNames, kNow);
  const Serving torn{"nonsense", "nonsense", {"nonsense", "nonsense"}};
  EXPECT_EQ(certificates_in(renew_serving(torn, kNames, kNow).authority), 1U);
  Serving mixed = made;
  mixed.server.key = other.server.key;
  EXPECT_TRUE(is_trusted(renew_serving(mixed, kNames, kNow).server, made.authority));
  EXPECT_NE(renew_serving(mixed, kNames, kNow).server.key, other.server.key);
  mixed = made;
  mixed.server = other.server;
  EXPECT_TRUE(is_trusted(renew_serving(mixed, kNames, kNow).server, made.authority));
  mixed = made;
  mixed.authority_key = other.authority_key;
  EXPECT_EQ(certificates_in(renew_serving(mixed, kNames, kNow).authority), 2U);
}

TEST(Serving, NamesThatAreNoneAreRefused) {
  for (const std::string name : {"", "a,DNS:evil.example", "a b"})
    EXPECT_THROW(renew_serving({}, {name}, kNow), Error) << name;
}

}  // namespace
}  // namespace hearth::pki
