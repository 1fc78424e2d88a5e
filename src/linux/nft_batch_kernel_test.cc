#include <linux/netfilter/nf_tables.h>
#include <sched.h>

#include "base/error.h"
#include "linux/kernel_testing.h"
#include "linux/namespaces.h"
#include "linux/nft_batch.h"
#include "linux/nft_expression.h"

namespace hearth::linux {
namespace {

// In a namespace of its own: what packets make of a table is tested in the room `network`.
class NftBatchTest : public testing::Test {
 protected:
  void SetUp() override {
    HEARTH_NEEDS(CAP_SYS_ADMIN);
    HEARTH_NEEDS(CAP_NET_ADMIN);
    outside_ = open_namespace(::getpid(), "net");
    enter_namespace(make_net_namespace().get(), CLONE_NEWNET);
    socket_.emplace();
  }
  void TearDown() override {
    if (outside_) enter_namespace(outside_.get(), CLONE_NEWNET);
  }

  void commit(NftBatch batch) { socket_->commit(batch, "change a table"); }

  Code code_of(const NftBatch& batch) {
    try {
      commit(batch);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("change a table"), std::string::npos);
      return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return Code::internal;
  }

  static NftBatch table() {
    NftBatch batch("t");
    batch.add_table();
    batch.add_chain("c");
    batch.add_address_set("s");
    batch.add_verdict_map("m");
    return batch;
  }

  Fd outside_;
  std::optional<NftSocket> socket_;
};

const std::string kKey = "\x0a\x01\x02\x03";

TEST_F(NftBatchTest, NothingIsNothing) {
  EXPECT_NO_THROW(commit(NftBatch("t")));
}

TEST_F(NftBatchTest, ElementsComeAndGo) {
  commit(table());
  NftBatch add("t");
  add.add_element("s", kKey);
  add.add_go_to("m", kKey, "c");
  commit(add);
  commit(add);  // what is there already is success

  NftBatch chain("t");
  chain.delete_chain("c");
  EXPECT_THROW(commit(chain), Error) << "an element leads to it";

  NftBatch take("t");
  take.delete_element("s", kKey);
  take.delete_element("m", kKey);
  take.delete_chain("c");
  commit(take);
  EXPECT_EQ(code_of(take), Code::not_found);
}

TEST_F(NftBatchTest, AFailureAnywhereChangesNothing) {
  commit(table());
  for (const bool first : {true, false}) {
    NftBatch batch("t");
    if (first) batch.add_rule("nowhere", nft::accept());
    batch.add_element("s", kKey);
    if (!first) batch.add_rule("nowhere", nft::accept());
    EXPECT_EQ(code_of(batch), Code::not_found);

    NftBatch take("t");
    take.delete_element("s", kKey);
    EXPECT_EQ(code_of(take), Code::not_found) << "the element must not have stayed";
  }
  // And the socket still knows which answer belongs to what.
  NftBatch fine("t");
  fine.add_element("s", kKey);
  EXPECT_NO_THROW(commit(fine));
}

TEST_F(NftBatchTest, ATableIsReplacedInOneStep) {
  commit(table());
  NftBatch replace("t");
  replace.add_table();
  replace.delete_table();
  replace.add_table();
  replace.add_chain("other");
  commit(replace);

  NftBatch old("t");
  old.add_rule("c", nft::accept());
  EXPECT_EQ(code_of(old), Code::not_found);
  NftBatch fresh("t");
  fresh.add_rule("other", nft::accept());
  fresh.flush_chain("other");
  EXPECT_NO_THROW(commit(fresh));
}

TEST_F(NftBatchTest, LongBatchesFit) {
  commit(table());
  NftBatch batch("t");
  for (int at = 0; at < 20'000; ++at) {
    batch.add_element("s", nft::number(static_cast<std::uint32_t>(at)));
  }
  EXPECT_NO_THROW(commit(batch));
}

}  // namespace
}  // namespace hearth::linux
