#include "gateway/passage.h"

#include <cstring>
#include <utility>

namespace hearth::gateway {
namespace {

// Kept by a thread when they are free: 16 MiB.
constexpr std::size_t kFreeBuffers = 256;

// Smaller reads are not worth their system calls: what has gone makes room before.
constexpr std::size_t kLeastRoom = kBufferBytes / 4;

}  // namespace

BufferPool::Buffer BufferPool::take() {
  if (free_.empty()) return std::make_unique_for_overwrite<char[]>(kBufferBytes);
  Buffer buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

void BufferPool::give(Buffer buffer) {
  if (free_.size() < kFreeBuffers) free_.push_back(std::move(buffer));
}

std::span<char> Passage::room() {
  if (!data_) data_ = pool_.take();
  if (kBufferBytes - end_ < kLeastRoom && at_ > 0) {
    std::memmove(data_.get(), data_.get() + at_, end_ - at_);
    ready_ -= at_;
    end_ -= at_;
    at_ = head_ = 0;
    is_whole_ = false;
  }
  return {data_.get() + end_, kBufferBytes - end_};
}

bool Passage::begin_body(std::size_t head, http::Framing framing) {
  head_ = at_ = ready_ = head;
  is_whole_ = true;
  decoder_ = http::BodyDecoder(framing);
  return frame();
}

void Passage::begin_raw() {
  is_whole_ = false;
  decoder_ = http::BodyDecoder({.kind = http::BodyKind::until_end});
  ready_ = end_;
}

bool Passage::frame() {
  while (ready_ < end_ && !decoder_.is_done()) {
    const auto step = decoder_.take({data_.get() + ready_, end_ - ready_});
    if (step.bad) return false;
    if (step.used == 0) break;
    ready_ += step.used;
  }
  return true;
}

void Passage::begin_next() {
  const std::size_t left = end_ - ready_;
  if (left > 0) std::memmove(data_.get(), data_.get() + ready_, left);
  end_ = left;
  head_ = at_ = ready_ = 0;
  is_whole_ = true;
  decoder_ = {};
  trim(false);
}

void Passage::trim(bool keeps_head) {
  if (!data_) return;
  if (!keeps_head && at_ == end_) {
    if (end_ > 0) is_whole_ = false;
    head_ = at_ = ready_ = end_ = 0;
  }
  if (end_ == 0) pool_.give(std::move(data_));
}

void Passage::clear() {
  head_ = at_ = ready_ = end_ = 0;
  if (data_) pool_.give(std::move(data_));
}

}  // namespace hearth::gateway
