// One direction of an exchange: bytes that were read and are not yet written on.
//
//   0        at()       ready            end
//   | head   | may be sent | not framed yet |
//
// The head stays where it is until somebody needs its room: a request can then be sent again. The
// buffer is one of the thread's, and goes back whenever it is empty.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/limits.h"
#include "http/body.h"

namespace hearth::gateway {

// Buffers of one thread, the warmest first.
class BufferPool {
 public:
  using Buffer = std::unique_ptr<char[]>;

  Buffer take();
  void give(Buffer buffer);

 private:
  std::vector<Buffer> free_;
};

class Passage {
 public:
  explicit Passage(BufferPool& pool) : pool_(pool) {}
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;
  ~Passage() { clear(); }

  // Where to read to, never empty unless the buffer is full of bytes that must go first; what has
  // gone makes room, and takes the head with it.
  std::span<char> room();
  void filled(std::size_t bytes) { end_ += bytes; }

  // All that is here.
  std::string_view bytes() const { return {data_.get(), end_}; }
  bool is_empty() const { return end_ == 0; }

  // The first `head` bytes are a head; a body follows, as it says. False: it is no such body.
  bool begin_body(std::size_t head, http::Framing framing);
  // Everything from here on may be sent.
  void begin_raw();
  // Looks at what has come. False: it is not what the head promised.
  bool frame();
  bool is_framed() const { return decoder_.is_done(); }
  bool ends_with_connection() const { return decoder_.ends_with_connection(); }

  std::string_view ready() const { return {data_.get() + at_, ready_ - at_}; }
  void sent(std::size_t bytes) { at_ += bytes; }
  // Whether the head and all that was sent of the body are still here.
  bool is_whole() const { return is_whole_; }
  void rewind() { at_ = head_; }

  // What does not belong to this message stays, as the beginning of the next.
  void begin_next();
  bool has_more() const { return end_ > ready_; }
  // Gives the buffer back if nobody will miss what is in it.
  void trim(bool keeps_head);
  void clear();

 private:
  BufferPool& pool_;
  BufferPool::Buffer data_;
  std::size_t head_ = 0;
  std::size_t at_ = 0;
  std::size_t ready_ = 0;
  std::size_t end_ = 0;
  bool is_whole_ = true;
  http::BodyDecoder decoder_;
};

}  // namespace hearth::gateway
