//! The keywords of a schema, and what may stand behind each.

/// What stands behind a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Anything: the keyword says nothing about what is valid.
    Note,
    /// Any value, as it is.
    Value,
    /// A list of values.
    Values,
    /// A type's name, or a list of them.
    Types,
    /// A number.
    Number,
    /// A number above 0.
    Step,
    /// A whole number from 0 on.
    Count,
    /// True or false.
    Switch,
    /// A list of names.
    Names,
    /// An object of lists of names.
    NamesByName,
    /// A regular expression.
    Pattern,
    /// A schema for the same place of the value.
    Schema,
    /// A list of such schemas.
    Schemas,
    /// An object of such schemas.
    SchemasByName,
    /// A schema for what is inside the value.
    Inner,
    /// A list of such schemas.
    Inners,
    /// An object of such schemas, or of ones that are only referred to.
    InnersByName,
    /// An object of such schemas by regular expression.
    InnersByPattern,
    /// A place in the schema.
    Reference,
    /// The name of the whole schema.
    Id,
    /// The draft that the schema is written in.
    Draft,
    /// Nothing: the keyword changes what is valid, and that is not checked here.
    Refused,
}

/// Every keyword there is, by name: those of draft 2020-12 (json-schema.org), those of older drafts, and the notes that
/// OpenAPI 3.1 adds.
const KEYWORDS: &[(&str, Shape)] = &[
    ("$anchor", Shape::Refused),
    ("$comment", Shape::Note),
    ("$defs", Shape::InnersByName),
    ("$dynamicAnchor", Shape::Refused),
    ("$dynamicRef", Shape::Refused),
    ("$id", Shape::Id),
    ("$recursiveAnchor", Shape::Refused),
    ("$recursiveRef", Shape::Refused),
    ("$ref", Shape::Reference),
    ("$schema", Shape::Draft),
    ("$vocabulary", Shape::Refused),
    ("additionalItems", Shape::Refused),
    ("additionalProperties", Shape::Inner),
    ("allOf", Shape::Schemas),
    ("anyOf", Shape::Schemas),
    ("const", Shape::Value),
    ("contains", Shape::Inner),
    ("contentEncoding", Shape::Note),
    ("contentMediaType", Shape::Note),
    ("contentSchema", Shape::Note),
    ("default", Shape::Note),
    ("definitions", Shape::InnersByName),
    ("dependencies", Shape::Refused),
    ("dependentRequired", Shape::NamesByName),
    ("dependentSchemas", Shape::SchemasByName),
    ("deprecated", Shape::Note),
    ("description", Shape::Note),
    ("discriminator", Shape::Note),
    ("else", Shape::Schema),
    ("enum", Shape::Values),
    ("example", Shape::Note),
    ("examples", Shape::Note),
    ("exclusiveMaximum", Shape::Number),
    ("exclusiveMinimum", Shape::Number),
    ("externalDocs", Shape::Note),
    ("format", Shape::Note),
    ("if", Shape::Schema),
    ("items", Shape::Inner),
    ("maxContains", Shape::Count),
    ("maxItems", Shape::Count),
    ("maxLength", Shape::Count),
    ("maxProperties", Shape::Count),
    ("maximum", Shape::Number),
    ("minContains", Shape::Count),
    ("minItems", Shape::Count),
    ("minLength", Shape::Count),
    ("minProperties", Shape::Count),
    ("minimum", Shape::Number),
    ("multipleOf", Shape::Step),
    ("not", Shape::Schema),
    ("oneOf", Shape::Schemas),
    ("pattern", Shape::Pattern),
    ("patternProperties", Shape::InnersByPattern),
    ("prefixItems", Shape::Inners),
    ("properties", Shape::InnersByName),
    ("propertyNames", Shape::Inner),
    ("readOnly", Shape::Note),
    ("required", Shape::Names),
    ("then", Shape::Schema),
    ("title", Shape::Note),
    ("type", Shape::Types),
    ("unevaluatedItems", Shape::Refused),
    ("unevaluatedProperties", Shape::Refused),
    ("uniqueItems", Shape::Switch),
    ("writeOnly", Shape::Note),
    ("xml", Shape::Note),
];

/// What stands behind a keyword; a name that begins with `x-` is a note of the author's own.
pub fn shape(keyword: &str) -> Option<Shape> {
    let known = KEYWORDS.iter().find(|(name, _)| *name == keyword).map(|(_, shape)| *shape);
    known.or_else(|| keyword.starts_with("x-").then_some(Shape::Note))
}

/// The names there are.
pub fn names() -> impl Iterator<Item = String> {
    KEYWORDS.iter().map(|(name, _)| (*name).to_owned())
}
