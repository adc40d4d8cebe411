-- Tend: the bounded clean-up that a reply's `more` left over.
--
-- returns  at, more
foresee({})
settle()
return finish({})
