#include "tenants/sandbox_tokens.h"

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "tenants/digest_internal.h"

namespace hearth::tenants {
namespace {

TEST(Digest, IsSha256) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // RFC 4231, test case 2.
  EXPECT_EQ(hmac_sha256_hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  // Whatever the key before it was.
  EXPECT_NE(hmac_sha256_hex("", "what do ya want for nothing?"),
            hmac_sha256_hex("Jeff", "what do ya want for nothing?"));
  EXPECT_EQ(hmac_sha256_hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(SandboxTokens, DifferByIdPurposeAndSeed) {
  const SandboxTokens tokens(std::string(32, 'a'));
  const SandboxTokens others(std::string(32, 'b'));
  const model::Key one{"red", "i1"};
  EXPECT_EQ(tokens.envd_token(one), tokens.envd_token(one));
  EXPECT_EQ(tokens.envd_token(one), hmac_sha256_hex(std::string(32, 'a'), "envd:red/i1"));
  EXPECT_NE(tokens.envd_token(one), tokens.envd_token({"red", "i2"}));
  EXPECT_NE(tokens.envd_token(one), tokens.envd_token({"blue", "i1"})) << "a namesake's";
  EXPECT_NE(tokens.envd_token(one), tokens.traffic_token(one));
  EXPECT_NE(tokens.envd_token(one), others.envd_token(one));
  EXPECT_EQ(tokens.envd_token(one).size(), 64U);
}

TEST(SandboxTokens, AShortSeedIsRefused) {
  EXPECT_THROW(SandboxTokens(std::string(31, 'a')), Error);
  EXPECT_THROW(SandboxTokens(""), Error);
}

TEST(TokenSeed, IsMadeOnceAndKept) {
  apiserver::TestServer server;
  const std::string seed = load_token_seed(server.client());
  EXPECT_GE(seed.size(), 32U);
  EXPECT_EQ(load_token_seed(server.client()), seed);
  server.reopen();
  EXPECT_EQ(load_token_seed(server.client()), seed);
}

TEST(TokenSeed, AnEmptyOneIsNotReplaced) {
  apiserver::TestServer server;
  load_token_seed(server.client());
  server.client().remove(client::kSecrets, "hearth-system", "sandbox-token-seed");
  server.client().create(client::kSecrets, apiserver::json(R"({"apiVersion":"v1","kind":"Secret",
      "metadata":{"name":"sandbox-token-seed","namespace":"hearth-system"}})"));
  EXPECT_THROW(load_token_seed(server.client()), Error);
}

}  // namespace
}  // namespace hearth::tenants
