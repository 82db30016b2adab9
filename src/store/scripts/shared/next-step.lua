-- The number of elements to read next, after `count` with `bytes` in all: a few at first, and never many, because the size of the next ones
-- is unknown before they are read.
local function nextStep(step, count, bytes, most)
  return math.max(1, math.min(step * 4, 17, math.floor(most / math.max(1, bytes / math.max(1, count)))))
end
