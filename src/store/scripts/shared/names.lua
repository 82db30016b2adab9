-- At most `most` names from a command, with `width` values for each (1 if not given): `read(many, from)` returns `many` of them from rank `from` on. The size of other programs' names is
-- unknown before they are read, and Redis copies the reply of a command once more for each large name in it. So it reads a few first and then small pages, a few again
-- after large names, and none after too many bytes of large ones; all calls of a script count together, and read one at a time after that. Also returns whether it left names
-- for that reason. With `isOptional` it then reads none.
local namesOf
do
  local FEW, PAGE, LARGE, MOST_BYTES = 2, 17, 4096, 262144 -- a hundred small names are seven commands
  local bytes = 0 -- of large names
  namesOf = function(most, read, width, isOptional)
    if isOptional and bytes > MOST_BYTES then return {}, true end
    width = width or 1
    local few, larger = FEW, PAGE
    if bytes > MOST_BYTES then few, larger = 1, 1 end
    local from, many = 0, math.min(most, few)
    local names = read(many, 0)
    local page = names
    while true do
      local size = 0
      for n = 1, #page, width do size = size + #page[n] end
      local areLarge = size > many * LARGE
      if areLarge then bytes = bytes + size end -- any number of usual names: what a script adds, another one must be able to remove
      if from + many >= most or #page < many * width then return names, false end
      if bytes > MOST_BYTES and (areLarge or larger > 1) then return names, true end
      from = from + many
      many = math.min(most - from, areLarge and few or larger)
      page = read(many, from)
      names.err = page.err
      local before = from * width
      for n = 1, #page do names[before + n] = page[n] end
    end
  end
end
