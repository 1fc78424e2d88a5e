// What the tests of this room share: folders, and certificates that never expire.
//
// The keys are known to everyone: they are good for tests and nothing else.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace hearth::client {

// A folder that goes with the test.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "client-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // Writes it anew and returns where it is.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::trunc) << text;
    return path(name);
  }

 private:
  std::filesystem::path folder_;
};

// A variable of the environment, for as long as the test runs.
class TestVariable {
 public:
  TestVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = ::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  TestVariable(const TestVariable&) = delete;
  TestVariable& operator=(const TestVariable&) = delete;
  ~TestVariable() { ::setenv(name_, before_.c_str(), 1); }

 private:
  const char* name_;
  std::string before_;
};

// For 127.0.0.1 and cluster.test; its own authority, and that of the user.
inline constexpr char kServerCertificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBojCCAUigAwIBAgIUBG3tSBvoVIDR/xpMo6DOWCzDKY4wCgYIKoZIzj0EAwIw\n"
    "FjEUMBIGA1UEAwwLaGVhcnRoIHRlc3QwIBcNMjYxMTE1MTUxOTEzWhgPMjEyNjEw\n"
    "MjIxNTE5MTNaMBYxFDASBgNVBAMMC2hlYXJ0aCB0ZXN0MFkwEwYHKoZIzj0CAQYI\n"
    "KoZIzj0DAQcDQgAElz6QsRLcy1HqBBil4jZlppX0VKVno0GbAE3qoHB+WU+ZM0hw\n"
    "lDYmjuSAg+tdPctqeFpVg7l3Xkf9sDuDcnWIjqNyMHAwHQYDVR0OBBYEFJLgTCx5\n"
    "8Z9Trdk/l4V/RD+Uv8vMMB8GA1UdIwQYMBaAFJLgTCx58Z9Trdk/l4V/RD+Uv8vM\n"
    "MA8GA1UdEwEB/wQFMAMBAf8wHQYDVR0RBBYwFIcEfwAAAYIMY2x1c3Rlci50ZXN0\n"
    "MAoGCCqGSM49BAMCA0gAMEUCIQDLsp4SgZeRXAspDWCo0TVwiNQJNEpR9GyYVBPA\n"
    "ZNCI0gIgH7J5AlO1BpC/gjvvh3F5bHgCE5n/vP0PuYFhOSmOMFc=\n"
    "-----END CERTIFICATE-----\n";
// Its key.
inline constexpr char kServerKey[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnu2foXydgaqf9spw\n"
    "5uH66r83ZespuMX1piugtWexWk+hRANCAASXPpCxEtzLUeoEGKXiNmWmlfRUpWej\n"
    "QZsATeqgcH5ZT5kzSHCUNiaO5ICD6109y2p4WlWDuXdeR/2wO4NydYiO\n"
    "-----END PRIVATE KEY-----\n";
// For jane of testers.
inline constexpr char kUserCertificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBNDCB2gIUSoDad510q1iN4qfa8Uzh34DDfzgwCgYIKoZIzj0EAwIwFjEUMBIG\n"
    "A1UEAwwLaGVhcnRoIHRlc3QwIBcNMjYxMTE1MTUxOTEzWhgPMjEyNjEwMjIxNTE5\n"
    "MTNaMCExEDAOBgNVBAoMB3Rlc3RlcnMxDTALBgNVBAMMBGphbmUwWTATBgcqhkjO\n"
    "PQIBBggqhkjOPQMBBwNCAAQhj1mMvES/fdOK6cOHFBQ9gqLt8fFkBmNBN3EWJ8Hf\n"
    "hsBQgBwnwrC5+GANIj2frPd2oS5OJGMfAVBzCjEjIkH0MAoGCCqGSM49BAMCA0kA\n"
    "MEYCIQCeTogoUYObr/cN0xoxGrpue7oFvutD8JxyR5jvY7rNogIhAL4r57Q5jY3K\n"
    "XgYM/JFW3R9fG+YeJutQ8nq6BvRe4qcu\n"
    "-----END CERTIFICATE-----\n";
// Her key.
inline constexpr char kUserKey[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgpn/NRzqAPEGBssyd\n"
    "g12Gm/MMLQR8GhSDJTtHdw8TNQmhRANCAAQhj1mMvES/fdOK6cOHFBQ9gqLt8fFk\n"
    "BmNBN3EWJ8HfhsBQgBwnwrC5+GANIj2frPd2oS5OJGMfAVBzCjEjIkH0\n"
    "-----END PRIVATE KEY-----\n";

}  // namespace hearth::client
