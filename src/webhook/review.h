// What a conversion webhook is asked (ConversionReview of apiextensions.k8s.io/v1), and its answer.
//
// The conversion is the one of our own API server (model/conversion.h). Of metadata it changes
// annotations and nothing else, as kube-apiserver demands.
#pragma once

#include <string>
#include <string_view>

namespace hearth::webhook {

// The answer to a review. All of its objects are converted, or none is and the answer says why:
// which object, and what is wrong with it. Throws Error(invalid) for what is no review, to which
// there is no answer.
std::string answer_review(std::string_view review);

}  // namespace hearth::webhook
