-- The bytes of large names that the script has read: names of more than `above` bytes, as no client's is. Other programs write names of any
-- size, which is unknown before they are read. All that reads such names counts them here, except for those that can be messages, which a
-- poll counts with their records. After more than `most` a script reads one at a time, and leaves the others to the next script. Of names
-- whose size is unknown it reads `few` first, then pages of `page`: a hundred small names are seven commands.
local largeNames = {bytes = 0, above = 1024, most = 262144, few = 2, page = 17}

-- At most `most` names from a command, with `width` values for each (1 if not given): `read(many, from)` returns `many` of them from rank
-- `from` on. Redis copies the reply of a command once more for each large name in it. So it reads a few first and then small pages, a few
-- again after large names, none after too many bytes of large ones, and one at a time if there were too many before. Also returns whether
-- it left names for that reason. With `isOptional` it then reads none.
local namesOf
do
  namesOf = function(most, read, width, isOptional)
    if isOptional and largeNames.bytes > largeNames.most then return {}, true end
    width = width or 1
    local few, larger = largeNames.few, largeNames.page
    if largeNames.bytes > largeNames.most then few, larger = 1, 1 end
    local from, many = 0, math.min(most, few)
    local names = read(many, 0)
    local page = names
    while true do
      local size = 0
      for n = 1, #page, width do size = size + #page[n] end
      local areLarge = size > many * largeNames.above
      if areLarge then largeNames.bytes = largeNames.bytes + size end -- any number of usual names: what a script adds, another one must be able to remove
      if from + many >= most or #page < many * width then return names, false end
      if largeNames.bytes > largeNames.most and (areLarge or larger > 1) then return names, true end
      from = from + many
      many = math.min(most - from, areLarge and few or larger)
      page = read(many, from)
      names.err = page.err
      local before = from * width
      for n = 1, #page do names[before + n] = page[n] end
    end
  end
end
