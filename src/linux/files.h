// Folders and whole files, by descriptor: nobody can lead a path elsewhere between two calls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth::linux {

// The names in a folder, sorted, without "." and "..".
std::vector<std::string> list_folder(int dir_fd);

// A file or a folder with everything in it. Never follows a link, never crosses into another file
// system. What is not there is success.
void remove_all_at(int dir_fd, const std::string& name);

// Writes a new file (mode 0600) and puts it in the place of the old one: readers see either.
void replace_file_at(int dir_fd, const std::string& name, std::string_view bytes);
// The same, with the bytes on the disk before they take the old ones' place: readers see either
// after a power cut as well. For what cannot be made again, such as keys.
void replace_file_durably_at(int dir_fd, const std::string& name, std::string_view bytes);

}  // namespace hearth::linux
