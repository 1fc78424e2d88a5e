// Header blocks: names and values, compressed by one zlib stream for each direction of a
// connection.
//
// The streams have memory: every block must pass through, in the order of the frames, also those
// that nobody wants to read.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::spdy {

// Names are in lower case. A name with several values comes once, with NUL between them.
using HeaderList = std::vector<std::pair<std::string, std::string>>;

// The first of that name; empty where there is none.
std::string_view header(const HeaderList& headers, std::string_view name);

class HeaderPacker {
 public:
  HeaderPacker();
  HeaderPacker(const HeaderPacker&) = delete;
  HeaderPacker& operator=(const HeaderPacker&) = delete;
  ~HeaderPacker();

  std::string pack(const HeaderList& headers);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class HeaderUnpacker {
 public:
  HeaderUnpacker();
  HeaderUnpacker(const HeaderUnpacker&) = delete;
  HeaderUnpacker& operator=(const HeaderUnpacker&) = delete;
  ~HeaderUnpacker();

  // Throws Error: invalid, exhausted (grows too long, or too many). The connection is over then.
  HeaderList unpack(std::string_view block);

 private:
  std::string inflate(std::string_view block);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::spdy
