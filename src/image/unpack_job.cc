#include "image/unpack_job.h"

#include <algorithm>

namespace hearth::image {
namespace {

// A sentence and a path.
constexpr std::size_t kMaxReportText = 5000;

Job::Task read_task(wire::Reader& in) {
  const std::uint8_t number = in.u8();
  if (number < static_cast<std::uint8_t>(Job::Task::decompress) ||
      number > static_cast<std::uint8_t>(Job::Task::copy))
    fail(Code::invalid, "there is no task {}", number);
  return static_cast<Job::Task>(number);
}

Compression read_compression(wire::Reader& in) {
  const std::uint8_t number = in.u8();
  if (number > static_cast<std::uint8_t>(Compression::zstd))
    fail(Code::invalid, "there is no compression {}", number);
  return static_cast<Compression>(number);
}

std::string presentable(std::string text) {
  if (text.size() > kMaxReportText) text.resize(kMaxReportText);
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

}  // namespace

std::string encode(const Job& job) {
  wire::Writer out;
  out.u8(static_cast<std::uint8_t>(job.task))
      .u8(static_cast<std::uint8_t>(job.compression))
      .text(job.digest)
      .u64(job.max_bytes)
      .boolean(job.overlay_marks);
  return std::move(out).take();
}

Job parse_job(std::string_view bytes) {
  return wire::parse_whole(bytes, [](wire::Reader& in) {
    Job job;
    job.task = read_task(in);
    job.compression = read_compression(in);
    job.digest = in.text();
    job.max_bytes = in.u64();
    job.overlay_marks = in.boolean();
    return job;
  });
}

std::string encode(const Report& report) {
  wire::Writer out;
  out.boolean(report.done)
      .u8(static_cast<std::uint8_t>(report.code))
      .text(report.message)
      .text(report.diff_id)
      .u64(report.bytes);
  return std::move(out).take();
}

Report parse_report(std::string_view bytes) {
  return wire::parse_whole(bytes, [](wire::Reader& in) {
    Report report;
    report.done = in.boolean();
    report.code = code_from_number(in.u8());
    report.message = presentable(in.text());
    report.diff_id = in.text();
    report.bytes = in.u64();
    if (!report.diff_id.empty() && !is_digest(report.diff_id))
      fail(Code::invalid, "a report with a diff id that is none");
    return report;
  });
}

}  // namespace hearth::image
