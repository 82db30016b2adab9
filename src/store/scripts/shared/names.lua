-- At most `most` names from a command: a few first, and the others if these are small, because the size of other programs' names is
-- unknown before they are read.
local FEW_NAMES, SMALL_NAMES = 4, 16384
local function namesOf(most, read)
  local names, size = read(math.min(most, FEW_NAMES)), 0
  for n = 1, #names do size = size + #names[n] end
  if most <= FEW_NAMES or #names < FEW_NAMES or size > SMALL_NAMES then return names end
  return read(most)
end
