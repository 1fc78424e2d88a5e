// Messages over a ByteStream: what server and client share.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "net/byte_stream.h"
#include "net/words.h"

namespace hearth::net {

enum class Outcome {
  ok,
  end,      // the peer left between two messages
  timeout,  // patience ran out; nothing was lost
  broken,   // the connection ended where it should not
  refused,  // what came is not acceptable: see problem()
};

enum class HeadKind { request, response, response_to_head };

// Reads one message after the other. Holds at most Limits::head_bytes (or kWindow, if that is
// more) of what has arrived; the rest waits in the kernel, and so does the peer.
class MessageReader {
 public:
  // Both must outlive the reader.
  MessageReader(ByteStream& stream, const Limits& limits) : stream_(stream), limits_(limits) {}

  // Waits `first` for the first byte, and from then on `whole` for the rest.
  boost::asio::awaitable<Outcome> read_head(HeadKind kind, Duration first, Duration whole);

  struct Piece {
    Outcome outcome = Outcome::ok;
    std::string_view bytes;  // valid until the next call; none: the body is over
  };
  boost::asio::awaitable<Piece> read_piece(Duration patience);

  Head& head() { return head_; }
  const Head& head() const { return head_; }
  const Problem& problem() const { return problem_; }
  // Whether the message was read to its end.
  bool is_done() const { return decoder_.is_done(); }
  // Whether bytes of the next message are here already.
  bool has_unread() const { return begin_ < end_; }
  // What the peer sent ahead, for whoever takes the connection over.
  std::string take_unread();

 private:
  std::string_view unread() const { return {storage_.data() + begin_, end_ - begin_}; }
  std::optional<Outcome> look_for_head(HeadKind kind, HeadScanner& scanner);
  Outcome refuse(Problem problem);
  void make_room();
  boost::asio::awaitable<boost::system::error_code> fill(Duration patience);

  ByteStream& stream_;
  const Limits& limits_;
  Head head_;
  Problem problem_;
  BodyDecoder decoder_;
  std::vector<char> storage_;
  std::size_t begin_ = 0;        // of what is unread
  std::size_t end_ = 0;          //
  std::size_t shown_ = 0;        // bytes of the piece that the caller is looking at
  bool last_fill_full_ = false;  // the last read took all the room there was
};

// A chunk as Gather wants it; `size_line` is made here and must outlive the write.
Gather chunk(std::string& size_line, std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

Gather gather(std::string_view first, std::string_view second = {});

}  // namespace hearth::net
