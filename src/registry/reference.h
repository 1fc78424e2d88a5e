// The name of an image in a registry: "python:3.12", "localhost:5000/team/app@sha256:...".
//
// Short names are Docker's: without a host they are on docker.io, without a folder there in
// "library", without tag and digest they are "latest".
#pragma once

#include <string>
#include <string_view>

namespace hearth::registry {

struct Reference {
  std::string host;        // "docker.io", "localhost:5000", "[::1]:5000"
  std::string repository;  // "library/python"
  std::string tag;         // may be empty if there is a digest
  std::string digest;      // or empty; wins over the tag

  // In full: what the image is called once it is here.
  std::string text() const;
  // What to ask the registry for.
  const std::string& version() const { return digest.empty() ? tag : digest; }
  // Where its registry really is.
  std::string server() const;

  bool operator==(const Reference&) const = default;
};

// Throws Error(invalid) that says which part is wrong.
Reference parse_reference(std::string_view text);

}  // namespace hearth::registry
